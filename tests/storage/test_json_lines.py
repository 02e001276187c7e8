"""JSON lines: types are those of the table, a key is missing only when no row has it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from tallybook.rows.ids import POSITION
from tallybook.storage import read


def test_values_by_their_text(rows, locate, table, text):
    file = text(
        "a.json",
        '{"id": 1, "Order Amount": 1E-10, "day": "2026-01-31", "paid": true, "more": [1]}',
        '{"id": "2", "Order Amount": 123456789012345678.1234567890}',
    )
    orders = table(id="integer!", amount="decimal(28,10) Order Amount", day="date", paid="boolean")
    assert rows(locate("json", file), orders) == [
        (1, Decimal("1E-10"), date(2026, 1, 31), True),
        (2, Decimal("123456789012345678.1234567890"), None, None),
    ]


def test_bad_values_and_lines(refused, locate, table, text):
    file = text("a.json", '{"id": 1}', '{"id": 2.5}')
    problem = refused(locate("json", file), table(id="integer"))
    assert (problem.type, f"{file} row 2: '2.5'" in problem.message) == ("DataLoadError", True)
    file = text("b.json", '{"id": 1}', '{"id": 2')
    problem = refused(locate("json", file), table(id="integer"))
    assert (problem.type, f"{file} line 2: '{{\"id\": 2'" in problem.message) == ("DataLoadError", True)


def test_lines_of_white_space_and_a_byte_order_mark_are_skipped(spark, rows, refused, locate, table, text):
    file = text("a.json", "\ufeff", "", '{"id": 1}', " ", "\t", " \t ", "\r", '\t{"id": 2} \t')
    assert rows(locate("json", file), table(id="integer")) == [(1,), (2,)]
    assert read(spark, locate("json", file), table(id="integer")).count() == 2
    file = text("b.json", "\ufeff" + '{"id": 1}', "\t", '{"id": 2} x')
    problem = refused(locate("json", file), table(id="integer"))
    assert (problem.type, f"{file} line 3:" in problem.message) == ("DataLoadError", True)


def test_missing_key(refused, rows, locate, table, text):
    problem = refused(locate("json", text("a.json", '{"id": 1, "Amount": 2}')), table(id="integer", amount="decimal"))
    assert (problem.type, problem.hint) == ("SchemaMismatch", "did you mean 'Amount'?")
    late = text("b.json", *['{"id": 1}'] * 1000, '{"id": 2, "amount": 3}')
    assert rows(locate("json", late), table(id="integer", amount="integer"))[-1] == (2, 3)


def test_a_system_column_that_comes_late_is_not_overlooked(spark, locate, table, text):
    file = text("a.json", *['{"id": 1}'] * 1000, '{"id": 2, "_deleted": true}')
    frame = read(spark, locate("json", file), table(id="integer"))
    assert frame.where("_deleted").select("id").collect() == [(2,)]


def test_no_rows_have_all_columns(spark, locate, table, text):
    frame = read(spark, locate("json", text("a.json")), table("period", id="integer"))
    assert frame.count() == 0
    assert {"id", "_period", POSITION} <= set(frame.columns)


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ('{"id": 2} {"id": 3}', "not exactly one JSON object", "nothing after it"),
        ('{"id": 2}, {"id": 3}', "not exactly one JSON object", "nothing after it"),
        ('{"id": 2}{"id": 3}', "not exactly one JSON object", "nothing after it"),
        ('{"id": 2} x', "not exactly one JSON object", "one object on each line"),
        ('{"id": 2}]', "not exactly one JSON object", "one object on each line"),
        ('{"id": 2},{"id": 3}] x', "not exactly one JSON object", "one object on each line"),
        ('{"id": 2, "no": {"x": 1}} // c', "not exactly one JSON object", "one object on each line"),
        ('[{"id": 2}]', "not exactly one JSON object", "one JSON array"),
        ("{", "not exactly one JSON object", "on one line"),
        ("2", "not exactly one JSON object", "one object on each line"),
        ('{"id": 2, "id": 3}', "the key 'id' twice", "once"),
        (r'{"id": 2, "\u0069d": 3}', "the key 'id' twice", "once"),
        ('{"no": 2, "id": 3, "no": 4}', "the key 'no' twice", "once"),
        ('{"ID": 2}', "the key 'ID' is 'id' in other lines", "the same way"),
    ],
)
def test_each_line_is_one_object_with_each_key_once(refused, locate, table, text, line, said, hint):
    file = text("a.json", '{"id": 1}', "", line)
    problem = refused(locate("json", file), table(id="integer"))
    assert problem.type == "DataLoadError"
    assert f"{file} line 3: " in problem.message
    assert said in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "line", ["{'id': 2}", '{"id": NaN}', '{"id": Infinity}', '{"id": 02}', "{id: 2}", '{"id": 2,}']
)
def test_what_is_not_json(refused, locate, table, text, line):
    file = text("a.json", '{"id": 1}', line)
    problem = refused(locate("json", file), table(id="integer"))
    assert (problem.type, f"{file} " in problem.message, line in problem.message) == ("DataLoadError", True, True)


def test_late_lines_and_unusual_lines(rows, refused, locate, table, text):
    many = ['{"id": 1, "note": "a } b"}'] * 1000
    nested = '{"id": 2, "note": {"a": {"b": [1, {"id": 3}]}}, "more": []}'
    orders = table(id="integer", note="string")
    assert rows(locate("json", text("a.json", *many, nested)), orders)[-1] == (2, '{"a": {"b": [1, {"id": 3}]}}')
    file = text("b.json", *many, '{"id": 1, "note": "x"}', '{"Id": 2, "note": "y"}')
    problem = refused(locate("json", file), orders)
    assert (problem.type, f"{file} line 1002: the key 'Id' is 'id'" in problem.message) == ("DataLoadError", True)


def test_keys_that_cannot_be_kept_apart(rows, refused, locate, table, text, tmp_path):
    location = locate("json", text("a.json", '{"id": 1, "Id": 2, "ID": 3}'))
    assert rows(location, table(id="integer")) == [(1,)]
    assert refused(location, table(a="integer id", b="integer Id")).type == "SchemaMismatch"
    text("e/ID=1/a.json", '{"id": 1}')
    assert refused(locate("json", tmp_path / "e"), table(id="integer")).type == "SchemaMismatch"


def test_a_folder_name_and_a_key_that_disagree(rows, refused, locate, table, text, tmp_path):
    text("d/year=2026/month=01/a.json", '{"id": 1, "month": 1}')
    location, orders = locate("json", tmp_path / "d"), table(id="integer", month="integer", year="string")
    assert rows(location, orders) == [(1, 1, "2026")]
    text("d/year=2026/month=02/a.json", '{"id": 2, "month": 3}')
    problem = refused(location, orders)
    assert (problem.type, "'3 (its folder says month=02)'" in problem.message) == ("DataLoadError", True)
    assert sorted(rows(location, table(id="integer"))) == [(1,), (2,)]
