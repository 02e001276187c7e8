"""Comparisons. Numbers by value, text by code point, dates and timestamps as moments; never text with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from tallybook.expressions.decimals import exact_common
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import ANYTHING, TEXT, Argument, Building, Function, Param, always, params, register
from tallybook.model.columns import BOOLEAN, MAX_PRECISION, NULL, TIMESTAMP, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

Operand = tuple["Column", Argument]
_ORDERING = ("<", "<=", ">", ">=")
_SPARK: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def why_not_comparable(operator: str, a: Argument, b: Argument) -> str | None:
    """The reason two values cannot be compared, with what to do after a semicolon."""
    if NULL in (a.type, b.type):
        return None
    kinds = {a.type.kind, b.type.kind}
    if kinds == {"boolean"} and operator in _ORDERING:
        return f"true and false have no order, so '{operator}' cannot compare them"
    if len(kinds) == 1 or kinds <= {"integer", "decimal"} or kinds == {"date", "timestamp"}:
        return None
    reason = f"{a.type} and {b.type} cannot be compared"
    if "string" in kinds and kinds & {"date", "timestamp"}:
        return f'{reason}; write dates as DATE("2026-01-31"), or convert with TO_DATE(…)'
    if "string" in kinds and kinds & {"integer", "decimal"}:
        return f"{reason}; convert text with TO_INTEGER(…) or TO_DECIMAL(…), or write the number as text"
    return reason


def compare(c: Building, operator: str, a: Operand, b: Operand) -> Column:
    """The comparison at a type that holds both values exactly."""
    (x, left), (y, right) = a, b
    if {left.type.kind, right.type.kind} == {"date", "timestamp"}:
        return _SPARK[operator](c.cast(x, TIMESTAMP), c.cast(y, TIMESTAMP))
    if "decimal" not in (left.type.kind, right.type.kind) or NULL in (left.type, right.type):
        return _SPARK[operator](x, y)
    common = exact_common(left.widened, right.widened)
    if common is not None:
        return _SPARK[operator](c.cast(x, common), c.cast(y, common))
    return _compare_in_parts(c, operator, a, b)


def _compare_in_parts(c: Building, operator: str, a: Operand, b: Operand) -> Column:
    """Whole parts first, fractions where those are equal: no single decimal could hold both numbers exactly."""

    def parts(operand: Operand) -> tuple[Column, Column]:
        value, type = c.cast(operand[0], operand[1].widened), operand[1].widened
        whole = c.cast(F.floor(value), decimal(MAX_PRECISION, 0))
        fraction = value - c.cast(whole, type) if type.integer_digits else value
        return whole, c.cast(fraction, decimal(MAX_PRECISION, MAX_PRECISION))

    (x_whole, x_fraction), (y_whole, y_fraction) = parts(a), parts(b)
    same_whole = x_whole == y_whole
    if operator in ("=", "<>"):
        equality = same_whole & (x_fraction == y_fraction)
        return equality if operator == "=" else ~equality
    return (x_whole != y_whole) & _SPARK[operator[0]](x_whole, y_whole) | same_whole & _SPARK[operator](
        x_fraction, y_fraction
    )


def equal(c: Building, a: Operand, b: Operand) -> Column:
    return compare(c, "=", a, b)


def _comparison(operator: str) -> Callable[..., Column]:
    return lambda c, x, y: compare(c, operator, (x, c.args[0]), (y, c.args[1]))


def _in(c: Building, subject: Column, *choices: Column) -> Column:
    matches = [equal(c, (subject, c.args[0]), (y, arg)) for y, arg in zip(choices, c.args[1:], strict=True)]
    if all(arg.type == c.args[0].type for arg in c.args[1:]):
        return subject.isin(*choices)
    return reduce(lambda a, b: a | b, matches)


def _between(c: Building, subject: Column, low: Column, high: Column) -> Column:
    x = (subject, c.args[0])
    return compare(c, ">=", x, (low, c.args[1])) & compare(c, "<=", x, (high, c.args[2]))


def _refuse_each(operator: str) -> Callable[[Sequence[Argument]], str | None]:
    return lambda args: next((r for arg in args[1:] if (r := why_not_comparable(operator, args[0], arg))), None)


_MEANINGS = {
    "=": ("True when both are equal; also written ==.", '"a" = "a"'),
    "<>": ("True when they differ; also written !=.", '"a" <> "A"'),
    "<": ("True when the left comes before the right.", "1 < 2"),
    "<=": ("True when the left is not after the right.", "2 <= 2"),
    ">": ("True when the left comes after the right.", '"b" > "a"'),
    ">=": ("True when the left is not before the right.", "2.50 >= 2.5"),
}
for _operator, (_meaning, _example) in _MEANINGS.items():
    register(
        Function(
            _operator,
            "comparisons",
            params(Param("the left", ANYTHING), Param("the right", ANYTHING)),
            f"a {_operator} b",
            always(BOOLEAN),
            _meaning,
            (_example, "true"),
            _comparison(_operator),
            operator=True,
            refuse=_refuse_each(_operator),
        )
    )
register(
    Function(
        "IN",
        "comparisons",
        params(Param("the value", ANYTHING), Param("a choice", ANYTHING), repeat=Param("a choice", ANYTHING)),
        "value IN (choice, …), value NOT IN (choice, …)",
        always(BOOLEAN),
        "True when the value equals one of the choices.",
        ('"b" IN ("a", "b")', "true"),
        _in,
        operator=True,
        refuse=_refuse_each("="),
        null_safe=True,
    )
)
register(
    Function(
        "BETWEEN",
        "comparisons",
        params(Param("the value", ANYTHING), Param("the low end", ANYTHING), Param("the high end", ANYTHING)),
        "value BETWEEN low AND high",
        always(BOOLEAN),
        "True when the value lies between both ends, ends included.",
        ("2 BETWEEN 1 AND 2", "true"),
        _between,
        operator=True,
        refuse=_refuse_each("<="),
        null_safe=True,
    )
)
register(
    Function(
        "LIKE",
        "comparisons",
        params(Param("the text", TEXT), Param("the pattern", TEXT)),
        'text LIKE "pattern"',
        always(BOOLEAN),
        "True when the whole text fits the pattern: % is any text, _ one character, a backslash takes them literally.",
        ('"invoice" LIKE "inv%"', "true"),
        lambda c, x, pattern: F.like(x, pattern),
        operator=True,
    )
)
