"""Cells: what YAML says, as values of a column's type, and as people read them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybook.model.columns import ColumnType
from tallybook.model.written import number_text, plain, show
from tallybook.project.yaml import load_documents
from tallybook.scenarios.values import read_value, same


def yaml(text: str) -> Any:
    return load_documents(f"a: {text}".encode(), "x.yaml")[0][0].value["a"]


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("007", "string", "007"),
        ("2026-01", "string", "2026-01"),
        ("1.50", "string", "1.50"),
        ("true", "string", "true"),
        ("null", "string", None),
        ("5.0", "integer", 5),
        ("9223372036854775807", "integer", 2**63 - 1),
        ("1.50", "decimal(4,2)", Decimal("1.5")),
        ("1e2", "decimal(3,0)", Decimal(100)),
        ("'12.30'", "decimal(4,2)", Decimal("12.3")),
        ('"-0.10"', "decimal(4,2)", Decimal("-0.1")),
        ("99.990", "decimal(4,2)", Decimal("99.99")),
        ("false", "boolean", False),
        ("2026-01-31", "date", date(2026, 1, 31)),
        ("2026-01-31T12:00:00+02:00", "timestamp", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("2026-01-31T12:00:00", "timestamp", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31", "timestamp", datetime(2026, 1, 31, tzinfo=UTC)),
    ],
)
def test_a_cell_is_read_as_its_column_says(text: str, type: str, value: object) -> None:
    assert read_value(yaml(text), ColumnType.parse(type)) == value


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("9223372036854775808", "integer"),
        ("true", "integer"),
        ("'1'", "integer"),
        ("'1,5'", "decimal"),
        ("'1e2'", "decimal"),
        ("''", "decimal"),
        ("' 1'", "decimal"),
        ("'٣'", "decimal"),
        ("'100'", "decimal(4,2)"),
        ("100", "decimal(4,2)"),
        ("0.001", "decimal(4,2)"),
        ("1", "boolean"),
        ("2026-02-30", "date"),
        ("20260131", "date"),
    ],
)
def test_a_cell_that_is_none_is_refused(text: str, type: str) -> None:
    with pytest.raises(ValueError, match=r"not|fit"):
        read_value(yaml(text), ColumnType.parse(type))


def test_an_expectation_may_name_a_number_the_column_cannot_hold() -> None:
    assert read_value(yaml("0.001"), ColumnType.parse("decimal(4,2)"), exact=False) == Decimal("0.001")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_numbers_are_compared_by_value_and_shown_without_loss(number: Decimal) -> None:
    text = number_text(number)
    assert Decimal(text) == number
    assert "E" not in text and not (text.endswith("0") and "." in text)
    assert same(read_value(yaml(text), ColumnType.parse("decimal(20,4)")), number)


def test_null_equals_null_alone() -> None:
    assert same(None, None)
    assert not same(None, 0)
    assert not same("", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "NULL"), ("NULL", '"NULL"'), ("", '""'), (" x", '" x"'), ("a\tb", '"a\\tb"'), (True, "true"), ("Ö", "Ö")],
)
def test_what_could_be_mistaken_is_shown_in_quotes(value: object, text: str) -> None:
    assert show(value) == text


def test_json_keeps_all_digits() -> None:
    assert plain(Decimal("0.10000000000000000001")) == "0.10000000000000000001"
    assert plain(Decimal("5.000000")) == 5
