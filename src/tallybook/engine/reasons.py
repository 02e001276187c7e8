"""Says in the user's words why a value made a job fail, and which function could not compute it."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.errors import PySparkException

from tallybook.expressions.registry import find_function
from tallybook.expressions.tree import Call, Node, walk
from tallybook.rows.raising import parse_raised
from tallybook.storage.failure import error_condition, reason, unwrapped
from tallybook.text import shortened

_ROUNDING = {"ROUND", "ROUND_HALF_EVEN", "ROUNDUP", "ROUNDDOWN", "TRUNC"}
_SUMMING = {"SUM", "SUM_IF", "AVG", "AVG_IF", "MEDIAN", "STDDEV"}
_CAUSES: dict[str, set[str]] = {
    "ARITHMETIC_OVERFLOW": {"+", "-", "*", "NEGATE", "ABS", "POWER", "ADD_MONTHS", *_ROUNDING, *_SUMMING},
    "CAST_INVALID_INPUT": {"TO_INTEGER", "TO_DECIMAL"},
    "CAST_OVERFLOW": {"+", "-", "TO_INTEGER", "FLOOR", "CEIL", "DATE", "DATEADD", "ADD_MONTHS", *_ROUNDING},
    "DATETIME_FIELD_OUT_OF_BOUNDS": {"DATE"},
    "NUMERIC_VALUE_OUT_OF_RANGE": {"+", "-", "*", "/", "TO_DECIMAL", "POWER", "PERCENT_OF", *_ROUNDING, *_SUMMING},
}
"""The functions and operators that Spark's errors about values can come from."""
_OF_TARGET = {"BIGINT": "TO_INTEGER", "DECIMAL": "TO_DECIMAL"}
_FIELDS = {"MonthOfYear": "month", "DayOfMonth": "day", "Year": "year"}
_NO_FIELD = re.compile(r"Invalid value for (\w+) \(valid values [^)]*\): (-?\d+)")
_NO_DAY = re.compile(r"Invalid date '([A-Za-z]+) (\d+)'(?: as '(\d+)' is not a leap year)?")


def value_reason(error: Exception, expression: Node | None = None) -> str:
    """Returns why a value made a job fail; with the function that failed, if the expression leaves no doubt."""
    raised = parse_raised(error)
    if raised is not None:
        return _prefixed(raised.get("function", ""), f"'{raised.get('value', '')}' {raised.get('reason', '')}".strip())
    error = unwrapped(error)
    if not isinstance(error, PySparkException):
        return sentence(error)
    details = error.getMessageParameters() or {}
    condition = (error_condition(error) or "").partition(".")[0]
    words = _WORDS.get(condition)
    try:
        said = words(details) if words else sentence(error)
    except KeyError:
        return sentence(error)
    return _prefixed(_culprit(condition, details, expression), said)


def _prefixed(function: str, said: str) -> str:
    return f"{function}: {said}" if function else said


def _culprit(condition: str, details: dict[str, str], expression: Node | None) -> str:
    """The one function of the expression that can fail so; none if several can, or an operator."""
    names = {node.name for node in walk(expression) if isinstance(node, Call)} if expression is not None else set()
    calls = [function for name in names if (function := find_function(name)) is not None]
    causes = {function.name for function in calls if function.name in _CAUSES.get(condition, ())}
    if condition == "CAST_INVALID_INPUT":
        target = details.get("targetType", "").strip('"').partition("(")[0]
        causes &= {_OF_TARGET.get(target, "")}
    [only] = causes if len(causes) == 1 else [""]
    return only if only.replace("_", "").isalpha() and only != "NEGATE" else ""


_WORDS: dict[str, Callable[[dict[str, str]], str]] = {
    "ARITHMETIC_OVERFLOW": lambda details: (
        "a sum has more digits than a decimal can hold"
        if "decimal" in details["message"]
        else "a result does not fit into a 64-bit integer"
    ),
    "NUMERIC_VALUE_OUT_OF_RANGE": lambda details: (
        f"{details['value'].strip()} does not fit into decimal({details['precision']},{details['scale']})"
    ),
    "CAST_INVALID_INPUT": lambda details: (
        f"{_shown(details['expression'])} is not a valid {_type_name(details['targetType'])}"
    ),
    "CAST_OVERFLOW": lambda details: f"{details['value'].strip().rstrip('BDL')} is too large here",
    "DATETIME_FIELD_OUT_OF_BOUNDS": lambda details: _no_such_day(details["rangeMessage"]),
}


def _no_such_day(said: str) -> str:
    """Says in our words what Java says about a year, month and day that are no date."""
    if (field := _NO_FIELD.match(said)) is not None:
        return f"there is no {_FIELDS.get(field[1], 'day')} {field[2]}"
    if (day := _NO_DAY.match(said)) is not None:
        return f"{day[1].capitalize()} has no day {day[2]}" + (f" in {day[3]}" if day[3] else "")
    return shortened(said)


def _shown(quoted: str) -> str:
    """Shortens a value that Spark has quoted."""
    return f"'{shortened(quoted[1:-1])}'" if quoted.startswith("'") else shortened(quoted)


def _type_name(spark_name: str) -> str:
    name = spark_name.strip('"').lower()
    return {"bigint": "integer"}.get(name, name)


def sentence(error: Exception) -> str:
    """Returns Spark's message without its advice to switch the check off. The advice comes last, after any value."""
    said = re.sub(r"^\[[^\]]+\]\s*", "", reason(error))
    for tail in (" SQLSTATE: ", " Use `", " If necessary set "):
        said = said.rpartition(tail)[0] or said
    return shortened(said.strip(), 500)
