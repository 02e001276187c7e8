"""JSON lines: types are those of the table, a key is missing only when no row has it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from tallybook.rows.ids import POSITION
from tallybook.storage import read


def test_values_by_their_text(rows, place, table, text):
    file = text(
        "a.json",
        '{"id": 1, "Order Amount": 1E-10, "day": "2026-01-31", "paid": true, "more": [1]}',
        '{"id": "2", "Order Amount": 123456789012345678.1234567890}',
    )
    orders = table(id="integer!", amount="decimal(28,10) Order Amount", day="date", paid="boolean")
    assert rows(place("json", file), orders) == [
        (1, Decimal("1E-10"), date(2026, 1, 31), True),
        (2, Decimal("123456789012345678.1234567890"), None, None),
    ]


def test_bad_values_and_lines(refused, place, table, text):
    file = text("a.json", '{"id": 1}', '{"id": 2.5}')
    problem = refused(place("json", file), table(id="integer"))
    assert (problem.type, f"{file} row 2: '2.5'" in problem.message) == ("DataLoadError", True)
    file = text("b.json", '{"id": 1}', '{"id": 2')
    problem = refused(place("json", file), table(id="integer"))
    assert (problem.type, f"{file} row 2: '{{\"id\": 2'" in problem.message) == ("DataLoadError", True)


def test_missing_key(refused, rows, place, table, text):
    problem = refused(place("json", text("a.json", '{"id": 1, "Amount": 2}')), table(id="integer", amount="decimal"))
    assert (problem.type, problem.hint) == ("SchemaMismatch", "did you mean 'Amount'?")
    late = text("b.json", *['{"id": 1}'] * 1000, '{"id": 2, "amount": 3}')
    assert rows(place("json", late), table(id="integer", amount="integer"))[-1] == (2, 3)


def test_a_system_column_that_comes_late_is_not_overlooked(refused, place, table, text):
    file = text("a.json", *['{"id": 1}'] * 1000, '{"id": 2, "_deleted": true}')
    problem = refused(place("json", file), table(id="integer"))
    assert (problem.type, f"{file} row 1001: '_deleted stands here" in problem.message) == ("DataLoadError", True)


def test_no_rows_have_all_columns(spark, place, table, text):
    frame = read(spark, place("json", text("a.json")), table("period", id="integer"))
    assert frame.count() == 0
    assert {"id", "_period", POSITION} <= set(frame.columns)
