"""The oracle itself: it knows every function, and agrees with the documented examples and with sums done by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tallybook.expressions.registry import FUNCTIONS, load_functions
from tallybook.model.columns import ColumnType

from .case import Case, TableRows
from .expressions import Context, Group, View, meaning_of
from .values import FailedError, half_up

load_functions()
TYPES = {"amount": "decimal(18,2)", "region": "string", "day": "date"}
VIEW = View("t", {name: ColumnType.parse(type) for name, type in TYPES.items()})
ROWS = [
    {"amount": Decimal("10.00"), "region": "EMEA", "day": date(2026, 1, 31)},
    {"amount": Decimal("20.50"), "region": "APAC", "day": date(2026, 1, 1)},
    {"amount": None, "region": "EMEA", "day": date(2026, 1, 31)},
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_documented_examples(name: str) -> None:
    function = FUNCTIONS[name]
    expression, expected = function.example
    grouped = frozenset({"unused"}) if function.aggregate else None
    context = Context((VIEW,), datetime(2026, 2, 1, tzinfo=UTC), "2026-01", grouped=grouped)
    value = meaning_of(expression, context).of(Group({}, ROWS) if function.aggregate else {})
    assert _text(value, expected) == expected


def _text(value: object, expected: str) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, Decimal) and value == Decimal(expected):
        return expected
    return str(value.replace(tzinfo=None)) if isinstance(value, datetime) else str(value)


@pytest.mark.parametrize(
    ("number", "scale", "units"),
    [("2.5", 0, 3), ("-2.5", 0, -3), ("2.4999", 0, 2), ("0.005", 2, 1), ("-0.005", 2, -1), ("1250", -2, 13)],
)
def test_halves(number: str, scale: int, units: int) -> None:
    assert half_up(Fraction(number), scale) == units


@pytest.mark.parametrize("expression", ["ABS(-{})", "-(-({}))"])
def test_signs_change_no_digit(expression: str) -> None:
    """Python's own abs and minus would round to 28 digits."""
    nines = "9" * 38
    context = Context((), datetime(2026, 2, 1, tzinfo=UTC), "2026-01")
    assert meaning_of(expression.format(nines[:37] + ".9"), context).of({}) == Decimal(nines[:37] + ".9")


def orders(*operations: dict[str, Any]) -> Case:
    table = {
        "name": "orders",
        "columns": [{"name": "id", "type": "string"}, {"name": "amount", "type": "decimal(9,2)"}],
    }
    types = {"id": ColumnType("string"), "amount": ColumnType.parse("decimal(9,2)")}
    rows = [{"id": id, "amount": amount} for id, amount in (("A", Decimal("1.25")), ("B", Decimal(3)), ("B", None))]
    numbered = [{"seq": seq, "name": "op", **body} for seq, body in enumerate(operations, 1)]
    project = {"id": "p", "name": "p", "input_dataset_id": "orders", "selectors": {}, "operations": numbered}
    dataset = {"id": "orders", "name": "orders", "main_table": table}
    return Case(project, (dataset,), {("orders", "orders"): TableRows(types, rows)}, as_of=date(2026, 1, 1))


def test_a_project_by_hand() -> None:
    half = {"column": "half", "expression": "amount / 2"}
    total = {"column": "amount", "expression": "SUM(half)"}
    result = orders(
        {"type": "update", "selector": "amount > 2", "arguments": {"assignments": [half]}},
        {"type": "aggregate", "arguments": {"group_by": ["id"], "aggregations": [total]}},
        {"type": "delete", "selector": 'id = "A"'},
        {"type": "output", "arguments": {"destination": {"location": "x"}, "columns": ["id", "amount"]}},
    ).interpreted()
    columns, rows = result.outputs[4]
    assert columns == ["id", "amount"]
    assert [tuple(row.values()) for row in rows] == [("B", Decimal(3)), ("B", None), ("B", Decimal("1.50"))]
    assert [row["_deleted"] for row in result.working.rows] == [True, False, False, True, False]
    assert str(result.working.business["half"]) == "decimal(38,31)"


def test_a_value_that_does_not_fit_fails() -> None:
    big = {"column": "amount", "expression": "amount * 10000000"}
    with pytest.raises(FailedError):
        orders({"type": "update", "arguments": {"assignments": [big]}}).interpreted()
