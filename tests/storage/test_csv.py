"""CSV: strict text to typed rows; every value that is none is named with file and row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from tallybook.model.columns import ColumnType
from tallybook.storage import read
from tallybook.storage.types import from_text


def test_columns_by_header_name_in_any_order(rows, locate, table, text):
    file = text(
        "orders.csv",
        "\ufeffactive,at,day,note,Order Amount,id",
        'true,2026-01-31T10:00:00,2026-01-31,"two\nlines",2.5,1',
        'FALSE,2026-01-31 10:00:00.123456+02:00,,"say ""hi""",,2',
        ",2026-01-31,2026-02-28,  spaced ,-1e1,3",
    )
    orders = table(
        id="integer!", amount="decimal(10,2) Order Amount", note="string", day="date", at="timestamp", active="boolean"
    )
    assert rows(locate("csv", file), orders) == [
        (1, Decimal("2.50"), "two\nlines", date(2026, 1, 31), _utc(10), True),
        (2, None, 'say "hi"', None, _utc(8, 123456), False),
        (3, Decimal("-10.00"), "  spaced ", date(2026, 2, 28), _utc(0), None),
    ]


def _utc(hour, microsecond=0):
    """What `collect` gives for an instant: local time without a zone."""
    instant = datetime(2026, 1, 31, hour, 0, 0, microsecond, tzinfo=UTC)
    return instant.astimezone().replace(tzinfo=None)


def test_names_that_begin_with_underscores_are_the_users(rows, locate, table, text):
    file = text("orders.csv", "a,__broken,__file", "11,x,u", "22,y,v")
    orders = table(__position="integer a", __broken="string", __row="string __file")
    assert rows(locate("csv", file), orders) == [(11, "x", "u"), (22, "y", "v")]


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("integer", "+12", 12),
        ("integer", " 12.00 ", 12),
        ("integer", "9223372036854775807", 9223372036854775807),
        ("integer", "9223372036854775808", None),
        ("integer", "12.5", None),
        ("integer", "1e3", None),
        ("integer", "1,000", None),
        ("integer", "", None),
        ("decimal(5,2)", "123.4500", Decimal("123.45")),
        ("decimal(5,2)", ".5", Decimal("0.50")),
        ("decimal(5,2)", "123.456", None),
        ("decimal(5,2)", "1234", None),
        ("decimal(5,2)", "1.2e1", Decimal("12.00")),
        ("decimal(5,2)", "12300E-2", Decimal("123.00")),
        ("decimal(5,2)", "0E-10", Decimal("0.00")),
        ("decimal(5,2)", "1E-3", None),
        ("decimal(5,2)", "1,000", None),
        ("decimal(5,2)", "1.2.3", None),
        ("decimal(5,2)", "NaN", None),
        ("decimal(5,2)", ".", None),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("decimal(38,0)", "9" * 39, None),
        ("boolean", "True", True),
        ("boolean", "1", None),
        ("boolean", "yes", None),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("date", "2026-02-29", None),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("date", "0000-05-05", None),
        ("date", "2026-2-1", None),
        ("date", "31.01.2026", None),
        ("date", "2026-01-31T00:00:00", None),
        ("timestamp", "2026-01-31T10:00", None),
        ("timestamp", "2026-01-31T10:00:00.1234567Z", None),
        ("timestamp", "2026-01-31T25:00:00Z", None),
        ("timestamp", "0000-12-31T23:00:00Z", None),
        ("timestamp", "0001-01-01T00:00:00+01:00", None),
        ("timestamp", "9999-12-31T23:00:00-01:00", None),
        ("string", "  kept  ", "  kept  "),
        ("string", "caf\ufffd", None),
    ],
)
def test_text_is_read_exactly_or_not_at_all(spark, type, text, value):
    column = from_text(F.lit(text), ColumnType.parse(type))
    assert spark.range(1).select(column).collect()[0][0] == value


def test_null_value(rows, locate, table, text):
    orders = table(id="integer", note="string")
    file = text("a.csv", "id,note", "NA,", '1,"NA"', "2,x")
    assert rows(locate("csv", file, null_value="NA"), orders) == [(None, ""), (1, None), (2, "x")]
    assert rows(locate("csv", text("b.csv", "id,note", ',""', "1,NA")), orders) == [(None, None), (1, "NA")]


def test_without_a_header_columns_go_by_position(rows, locate, table, text):
    location = locate("csv", text("a.csv", "1;x", "2;y"), has_header=False, delimiter=";")
    assert rows(location, table(id="integer", note="string")) == [(1, "x"), (2, "y")]


def test_bad_values_are_named_with_file_and_row(refused, locate, table, text):
    file = text("a.csv", "id,amount", '1,"1,000"', "2,5.00", "3,1.234", *(f"{n},x{n}" for n in range(4, 9)))
    problem = refused(locate("csv", file), table(id="integer", amount="decimal(10,2)"))
    assert problem.type == "DataLoadError"
    assert problem.message == "column 'amount' of table 'orders' is decimal(10,2) and cannot hold 7 values:"
    assert [(value.row, value.value) for value in problem.bad_values] == [
        (1, "1,000"),
        (3, "1.234"),
        *((n, f"x{n}") for n in range(4, 9)),
    ]
    assert f"\n    {file} row 3: column 'amount' is decimal(10,2) and cannot hold '1.234'\n" in str(problem)
    assert "2 after" in problem.hint


def test_bad_values_of_all_columns_and_files_are_named_at_once(refused, locate, table, text):
    one = text("in/a.csv", "id,amount,day", "1,x,2026-01-01", "y,2,2026-02-30", "3,3,2026-01-01")
    two = text("in/b.csv", "day,id,amount", "2026-01-01,4,z", "2026-01-01,5")
    orders = table(id="integer", amount="decimal(10,2)", day="date")
    problem = refused(locate("csv", one.parent), orders)
    assert problem.message == "table 'orders' cannot be read because of 5 values and rows:"
    assert [(value.where, value.column, value.value) for value in problem.bad_values] == [
        (f"{one} row 1", "amount", "x"),
        (f"{one} row 2", "id", "y"),
        (f"{one} row 2", "day", "2026-02-30"),
        (f"{two} row 1", "amount", "z"),
        (f"{two} row 2", None, "2026-01-01,5"),
    ]
    few = text("c.csv", "id,amount,day", "1,x,2026-01-01")
    assert refused(locate("csv", few), orders).message == (
        f"column 'amount' of table 'orders' is decimal(10,2) and cannot hold {few} row 1: 'x'"
    )


def test_a_hundred_bad_values_are_enough(refused, locate, table, text):
    file = text("a.csv", "a,b", *(f"x{n},{'y' if n > 150 else 1}" for n in range(200)))
    columns = {"a": "integer", "b": "integer"}
    problem = refused(locate("csv", file), table(**columns))
    assert problem.message.endswith("cannot hold more than 100 values; the first 100 are:")
    assert [value.value for value in problem.bad_values] == [f"x{n}" for n in range(100)]


def test_null_where_none_may_be(refused, locate, table, text):
    file = text("a.csv", "id,note", "1,x", ",y")
    problem = refused(locate("csv", file), table(id="integer!", note="string"))
    assert (problem.type, f"{file} row 2: NULL" in problem.message) == ("DataLoadError", True)


def test_lines_with_too_few_or_too_many_fields(refused, locate, table, text):
    file = text("a.csv", "id,note", "1,x", "2", "3,x,y")
    problem = refused(locate("csv", file), table(note="string"))
    assert problem.type == "DataLoadError"
    assert f"{file} row 2: '2'; {file} row 3: '3,x,y'" in problem.message


def test_bytes_that_are_no_utf8(refused, locate, table, tmp_path):
    file = tmp_path / "latin.csv"
    file.write_bytes(b"note\nok\ncaf\xe9\n")
    problem = refused(locate("csv", file), table(note="string"))
    assert (problem.type, problem.hint) == ("DataLoadError", "the column needs text in UTF-8")


def test_a_column_nobody_asks_for_is_not_checked(spark, locate, table, text):
    frame = read(spark, locate("csv", text("a.csv", "id,day", "1,x")), table(id="integer", day="date"))
    assert frame.select("id").collect() == [(1,)]


def test_missing_column(refused, locate, table, text):
    file = text("a.csv", "id,Order Amout", "1,2")
    problem = refused(locate("csv", file), table(id="integer", amount="decimal Order Amount"))
    assert (problem.type, problem.hint) == ("SchemaMismatch", "did you mean 'Order Amout'?")
    assert str(file) in problem.message


def test_each_file_has_its_own_header(rows, refused, locate, table, text, tmp_path):
    text("orders/a.csv", "id,note", "1,x")
    text("orders/b.csv", "note,id", "y,2")
    location = locate("csv", tmp_path / "orders")
    assert rows(location, table(id="integer", note="string")) == [(1, "x"), (2, "y")]
    other = text("orders/c.csv", "id", "3")
    assert str(other) in refused(location, table(id="integer", note="string")).message


def test_folder_names_are_columns_of_text(rows, locate, table, text, tmp_path):
    text("orders/month=01/a.csv", "id", "1")
    text("orders/month=02/a.csv", "id,note", "2,x")
    location = locate("csv", tmp_path / "orders")
    assert rows(location, table(id="integer", month="string")) == [(1, "01"), (2, "02")]


def test_header_only_is_no_rows(rows, locate, table, text):
    assert rows(locate("csv", text("a.csv", "id")), table(id="integer")) == []


def test_a_column_that_is_there_twice(rows, refused, locate, table, text):
    """Spark would call them amount1 and amount2."""
    file = text("a.csv", "id,amount,amount", "1,2,3")
    assert rows(locate("csv", file), table(id="integer")) == [(1,)]
    problem = refused(locate("csv", file), table(id="integer", amount="integer"))
    assert (problem.type, problem.message) == ("SchemaMismatch", f"{file} has the column 'amount' twice")
    problem = refused(locate("csv", file), table(id="integer", amount1="integer"))
    assert (problem.type, "has no column 'amount1'" in problem.message) == ("SchemaMismatch", True)


def test_columns_that_differ_by_case_are_read_by_their_exact_name(rows, locate, table, text):
    location = locate("csv", text("a.csv", 'id,Amount,"amount"', "1,2,3"))
    assert rows(location, table(id="integer", amount="integer")) == [(1, 3)]
    assert rows(location, table(id="integer", Amount="integer")) == [(1, 2)]
