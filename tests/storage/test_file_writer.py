"""Plain files: what is written is what comes back, in one step, and a retry by the same run changes nothing."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from tests.storage.kit import refusal

from tallybook.storage import write
from tallybook.storage.publish import locked

SCHEMA = "id bigint, amount decimal(28,10), note string, day date, at timestamp, paid boolean"
COLUMNS = {
    "id": "integer", "amount": "decimal(28,10)", "note": "string", "day": "date", "at": "timestamp", "paid": "boolean",
}  # fmt: skip
ROWS = [
    (1, Decimal("0E-10"), ' "quoted", \\ ', dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 10, 0, 0, 123456), True),
    (2, Decimal("123456789012345678.1234567891"), "two\nlines é", dt.date(1, 1, 1), dt.datetime(1999, 1, 1), False),
    (3, None, None, None, None, None),
]  # fmt: skip


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json"])
@pytest.mark.parametrize("name", ["out dir", "out.{}"])
def test_round_trip(save, rows, locate, table, tmp_path, format, name):
    location = locate(format, tmp_path / "deep" / name.format(format))
    written = save(ROWS, location, schema=SCHEMA)
    assert (written.rows, written.columns, written.version) == (3, tuple(COLUMNS), None)
    assert sorted(rows(location, table(**COLUMNS))) == ROWS
    assert [path.name for path in (tmp_path / "deep").iterdir()] == [name.format(format)]


def test_a_name_with_the_extension_is_one_file(save, locate, tmp_path):
    file = tmp_path / "report.csv"
    save([(1,), (2,)], locate("csv", file))
    assert sorted(file.read_text().splitlines()) == ["1", "2", "id"]
    save([(3,)], locate("csv", file), run="run-2")
    assert file.read_text() == "id\n3\n"
    assert "single file" in refusal(save, [(4,)], locate("csv", file), mode="append")
    assert "already exists" in refusal(save, [(4,)], locate("csv", file), mode="error")
    assert file.read_text() == "id\n3\n"


def test_other_readers_see_utc_microseconds_and_decimals(save, locate, tmp_path):
    save(ROWS, locate("parquet", tmp_path / "a.parquet"), schema=SCHEMA)
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert schema.field("at").type == pa.timestamp("us", "UTC")
    assert schema.field("amount").type == pa.decimal128(28, 10)


def test_csv_in_plain_digits_with_its_options(save, rows, locate, table, tmp_path):
    location = locate("csv", tmp_path / "a.csv", delimiter=";", has_header=False, null_value="NA")
    save([(Decimal("0E-10"), "", None)], location, schema="a decimal(20,10), b string, c string")
    assert (tmp_path / "a.csv").read_text() == '0.0000000000;"";NA\n'
    assert rows(location, table(a="decimal(20,10)", b="string", c="string")) == [(Decimal("0E-10"), "", None)]


def test_a_byte_order_mark_that_readers_would_drop_is_not_written(save, rows, locate, table, tmp_path):
    text = "\ufeffx"
    bare = locate("csv", tmp_path / "a.csv", has_header=False)
    message = refusal(save, [(text,)], bare, schema="note string")
    assert "column 'note'" in message and "a CSV file without a header" in message
    assert not (tmp_path / "a.csv").exists()
    headed = locate("csv", tmp_path / "b.csv")
    save([(text,)], headed, schema="note string")
    assert rows(headed, table(note="string")) == [(text,)]


def test_a_lonely_null_is_still_a_row(save, rows, locate, table, tmp_path):
    location = locate("csv", tmp_path / "out")
    assert save([(1,), (None,), (2,)], location).rows == 3
    assert sorted(rows(location, table(id="integer")), key=str) == [(1,), (2,), (None,)]


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json"])
def test_an_empty_result_is_a_typed_table(save, rows, locate, table, tmp_path, format):
    location = locate(format, tmp_path / "out")
    assert save([], location, schema=SCHEMA).rows == 0
    assert rows(location, table(**COLUMNS)) == []
    files = list((tmp_path / "out").iterdir())
    if format == "parquet":
        assert pq.read_schema(files[0]).names == list(COLUMNS)
    if format == "orc":
        assert orc.ORCFile(files[0]).schema.names == list(COLUMNS)


def test_append_and_its_retry(save, rows, locate, table, run_id, tmp_path):
    location = locate("parquet", tmp_path / "out")
    save([(1,)], location, mode="append", run="run-1")
    assert save([(2,), (3,)], location, mode="append", run="run-2").rows == 2
    assert save([(2,), (3,)], location, mode="append", run="run-2").rows == 2
    save([(4,)], location, mode="append", run="run-2", seq=6)
    assert sorted(rows(location, table(id="integer"))) == [(1,), (2,), (3,), (4,)]
    written = {file.name.rpartition("-")[0] for file in (tmp_path / "out").iterdir()}
    assert written == {f"{run_id('run-1')}-5", f"{run_id('run-2')}-5", f"{run_id('run-2')}-6"}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_append_wants_the_same_columns(save, rows, locate, table, tmp_path, format):
    location = locate(format, tmp_path / "out")
    save([(1,)], location)
    assert "no bigint" in refusal(save, [(1,)], location, mode="append", run="run-2", schema="no bigint")
    assert rows(location, table(id="integer")) == [(1,)]


def test_overwrite_may_change_the_columns(save, rows, locate, table, tmp_path):
    location = locate("parquet", tmp_path / "out")
    save([(1,)], location)
    save([("x",)], location, run="run-2", schema="note string")
    assert rows(location, table(note="string")) == [("x",)]


def test_error_mode(save, rows, locate, table, tmp_path):
    location = locate("parquet", tmp_path / "out")
    (tmp_path / "out").mkdir()
    save([(1,)], location, mode="error")
    save([(1,)], location, mode="error")
    assert "already exists" in refusal(save, [(2,)], location, mode="error", run="run-2")
    assert rows(location, table(id="integer")) == [(1,)]


def test_a_failing_computation_leaves_the_old_content(spark, save, rows, locate, table, run_id, tmp_path):
    location = locate("parquet", tmp_path / "out")
    save([(1,)], location)
    frame = spark.range(3).selectExpr("if(id = 2, raise_error('no'), id) id")
    with pytest.raises(Exception, match="no"):
        write(spark, frame, location, mode="overwrite", run_id=run_id("run-2"), seq=5)
    assert rows(location, table(id="integer")) == [(1,)]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_object_stores_are_left_to_delta(save, locate):
    assert "object store" in refusal(save, [(1,)], locate("parquet", "s3a://bucket/out"))


def test_writers_of_one_target_wait_for_each_other(tmp_path):
    events = []

    def second():
        with locked(tmp_path / "out"):
            events.append("second")

    with locked(tmp_path / "out"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        events.append("first")
    thread.join()
    assert events == ["first", "second"]
    assert list(tmp_path.iterdir()) == []


def test_one_file_holds_all_rows_whatever_the_session_says(save, spark, locate, tmp_path):
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "1")
    try:
        assert save([(1,), (2,), (3,)], locate("csv", tmp_path / "report.csv")).rows == 3
        assert save([(1,), (2,), (3,)], locate("csv", tmp_path / "reports")).rows == 3
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert len((tmp_path / "report.csv").read_text().splitlines()) == 4
    assert len(list((tmp_path / "reports").iterdir())) == 3
