"""Parameters: how their values are read, and how expressions read them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tallybook.errors import ValidationError
from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.parameters import parameter_values, read_value, type_of_value
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, STRING, TIMESTAMP, ColumnType, decimal
from tallybook.model.parameter import Parameter
from tallybook.model.written import written

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SCOPE = Scope((ScopeTable("t", {"amount": DECIMAL, "day": DATE}),)).with_parameters(
    {"threshold": DECIMAL, "since": DATE, "region": STRING}
)


@pytest.mark.parametrize(
    ("given", "type", "value"),
    [
        ("500", DECIMAL, Decimal(500)),
        (500, DECIMAL, Decimal(500)),
        (Decimal("0.25"), decimal(4, 2), Decimal("0.25")),
        (" 1e3 ", DECIMAL, Decimal(1000)),
        ("-7", INTEGER, -7),
        (7, STRING, "7"),
        ("", STRING, ""),
        ("TRUE", BOOLEAN, True),
        (False, BOOLEAN, False),
        ("2026-01-31", DATE, date(2026, 1, 31)),
        (date(2026, 1, 31), DATE, date(2026, 1, 31)),
        ("2026-01-31T13:00:00+01:00", TIMESTAMP, NOON),
        (NOON, TIMESTAMP, NOON),
    ],
)
def test_a_value_is_read_from_text_or_python_and_written_back(given: object, type: ColumnType, value: object) -> None:
    read = read_value(given, type)
    assert (read, read.__class__) == (value, value.__class__)
    assert read_value(written(read), type) == read


@pytest.mark.parametrize(
    ("given", "type", "reason"),
    [
        ("1,000", DECIMAL, "'1,000' is not a number that fits decimal(18,6)"),
        ("0.125", decimal(4, 2), "'0.125' has more than 2 digits after the point"),
        ("100", decimal(4, 2), "'100' is not a number that fits decimal(4,2)"),
        ("1.5", INTEGER, "'1.5' is not a whole number of 64 bits"),
        ("9" * 19, INTEGER, f"'{'9' * 19}' is not a whole number of 64 bits"),
        ("yes", BOOLEAN, "'yes' is not true or false"),
        ("31.01.2026", DATE, "'31.01.2026' is not a date such as 2026-01-31"),
        ("2026-01-31", TIMESTAMP, "'2026-01-31' is not a timestamp such as 2026-01-31T12:00:00Z"),
        (0.5, DECIMAL, "0.5 is a float, which is not exact; give a Decimal, or text"),
        ([1], DECIMAL, "a value is text, a number, true, false, a date or a timestamp"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_reason(given: object, type: ColumnType, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_value(given, type)
    assert str(refused.value) == reason


def test_unknown_wrong_and_missing_values_are_reported_together() -> None:
    declared = {"threshold": Parameter(type=DECIMAL, default="1000"), "since": Parameter(type=DATE)}
    with pytest.raises(ValidationError) as refused:
        parameter_values(declared, {"treshold": "5", "threshold": "many"}, "close")
    problems = [(problem.type, problem.path, problem.project) for problem in refused.value.problems]
    assert problems == [
        ("ColumnNotFound", "treshold", "close"),
        ("TypeMismatch", "threshold", "close"),
        ("InvalidArguments", "since", "close"),
    ]
    assert refused.value.problems[0].hint == "did you mean 'threshold'?"
    assert parameter_values(declared, {"since": "2026-01-01"}) == {
        "threshold": Decimal(1000),
        "since": date(2026, 1, 1),
    }


def _typed(text: str, *, grouped: frozenset[str] | None = None) -> Typed:
    checker = Checker(SCOPE, grouped)
    typed = checker.check(parse(text))
    assert typed is not None, checker.problems
    return typed


def test_a_parameter_is_a_constant_that_needs_no_row() -> None:
    evaluator = Evaluator(NOON, "2026-01", parameters={"threshold": Decimal(5), "region": "EMEA"})
    assert evaluator.value(_typed('params.threshold * 2 > 9 AND params.region = "EMEA"')) is True
    assert _typed("SUM(amount) > params.threshold", grouped=frozenset()).type == BOOLEAN


@pytest.mark.parametrize(
    ("text", "type", "hint"),
    [
        ("amount > params.treshold", "ColumnNotFound", "did you mean 'threshold'?"),
        ("amount > threshold", "ColumnNotFound", "write params.threshold to read the parameter"),
        ("amount > params.region", "TypeMismatch", None),
        ("day + params.threshold > day", "TypeMismatch", None),
        ("ROUND(amount, params.threshold)", "TypeMismatch", None),
    ],
)
def test_mistakes_with_parameters_are_found_with_a_hint(text: str, type: str, hint: str | None) -> None:
    checker = Checker(SCOPE)
    assert checker.check(parse(text)) is None
    (problem,) = checker.problems
    assert problem.type == type
    assert hint is None or problem.hint == hint


def test_a_total_is_not_grouped_by_a_parameter() -> None:
    checker = Checker(SCOPE, over=True)
    assert checker.check(parse("SUM(amount) OVER (day, params.region)")) is None
    (problem,) = checker.problems
    assert (problem.type, problem.hint) == ("ColumnNotFound", "leave it out: it is the same for all rows")


def test_without_parameters_the_hint_says_where_they_are_declared() -> None:
    checker = Checker(Scope((ScopeTable("t", {"amount": DECIMAL}),)))
    checker.check(parse("amount > params.threshold"))
    (problem,) = checker.problems
    assert (problem.type, "`parameters`" in (problem.hint or "")) == ("ColumnNotFound", True)


def test_a_python_value_has_its_type() -> None:
    values = {"x": STRING, 5: INTEGER, True: BOOLEAN, Decimal("1E+3"): decimal(4, 0), NOON: TIMESTAMP}
    assert {value: type_of_value(value) for value in values} == values
    for wrong in (0.5, Decimal("NaN"), datetime(2026, 1, 1), None):
        with pytest.raises(ValueError):
            type_of_value(wrong)
