"""The strict readers themselves, on texts whose meaning is plain."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from .strict_csv import records
from .strict_json import objects
from .strict_values import value_of
from .verdict import MalformedError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        ("a\r\nb\rc\nd", [["a"], ["b"], ["c"], ["d"]]),
        ("\n\r\n\ra\n\n", [["a"]]),
        ('"a\r\nb",""\n"""",x\n', [["a\r\nb", ""], ['"', "x"]]),
        ('""\n', [[""]]),
        (" a , b\n,\n", [[" a ", " b"], ["", ""]]),
        ("\ufeff\ufeffa\n", [["\ufeffa"]]),
    ],
)
def test_csv_records(text, found):
    assert records(text, ",") == found


@pytest.mark.parametrize("text", ['"a"b', '"a" b,c', '"a', '"a""', 'x,"a\n1,2\n'])
def test_malformed_csv(text):
    with pytest.raises(MalformedError):
        records(text, ",")


def test_csv_with_long_delimiters_and_stray_quotes():
    assert records('a|b||"c||d"\n', "||") == [["a|b", "c||d"]]
    assert records('a"b,"c" \t\n', ",") == [['a"b', "c"]]


def test_json_objects():
    text = '{"a": 1.50, "b": "x\\u0041"}\r\n\r { "b" : null }\n{"a": true, "c": [1.0]}'
    found = objects(text)
    assert found[:2] == [{"a": "1.50", "b": "xA"}, {"b": None}]
    assert (found[2]["a"], found[2]["c"]) == ("true", "[1.0]")
    assert found[2]["c"] != "[1.00]"


@pytest.mark.parametrize(
    "line",
    ['{"a": 1} {"a": 2}', '{"a": 1, "\\u0061": 2}', '{"a": 1,}', "[]", "1", '{"a": NaN}', "{'a': 1}", '{"a": 01}'],
)
def test_malformed_json(line):
    with pytest.raises(MalformedError):
        objects(line)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("integer", " +12.00 ", 12),
        ("integer", "-9223372036854775808", -(2**63)),
        ("decimal(5,2)", "1200e-2", Decimal(12)),
        ("decimal(5,2)", "999.990", Decimal("999.99")),
        ("decimal(3,0)", "0e-10", Decimal(0)),
        ("boolean", "True", True),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("timestamp", "2026-01-31 10:00:00.1234560-0530", datetime(2026, 1, 31, 15, 30, 0, 123456, UTC)),
        ("timestamp", "2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("string", " x ", " x "),
    ],
)
def test_values(type, text, value):
    assert value_of(text, type) == value


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("integer", "9223372036854775808"),
        ("integer", "1e3"),
        ("integer", "1\n"),
        ("decimal(5,2)", "1000"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1,0"),
        ("boolean", "1"),
        ("date", "2026-02-30"),
        ("date", "2026-01-01 00:00:00"),
        ("timestamp", "2026-01-01T10:00"),
        ("timestamp", "0001-01-01T00:00:00+01:00"),
        ("timestamp", "2026-01-01T00:00:00.1234567Z"),
        ("string", "caf\ufffd"),
    ],
)
def test_no_values(type, text):
    with pytest.raises(MalformedError):
        value_of(text, type)
