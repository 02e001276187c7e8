"""`partition_by` for Delta and Parquet: every value comes back as it was, and nobody else's files are touched."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.storage.kit import refusal
from tests.storage.test_delta_periods import ids, periods

from tallybook.storage.formats import FORMATS
from tallybook.storage.output import Output

SCHEMA = "id bigint, name string, day date, amount decimal(18,6), at timestamp, paid boolean, n bigint"
TYPES = ("integer", "string", "date", "decimal", "timestamp", "boolean", "integer")
NAMES = [
    "a/b",
    "a=b",
    "a b ",
    " ",
    "100% é",
    "x:y",
    "{c}",
    "[d]*?",
    'it\'s "q"',
    "back\\slash",
    "line\nbreak",
    "..",
    "01",
    "NULL",
    "#",
    "ı\u0301",
    "%2F",
]
MOMENT = dt.datetime(2026, 1, 31, 10, 0, 0, 123456)
ROWS = [
    *((number, name, dt.date(2026, 1, 31), Decimal("1.500000"), MOMENT, True, 7) for number, name in enumerate(NAMES)),
    (90, "tiny", dt.date(1, 1, 1), Decimal("0.000001"), dt.datetime(1999, 12, 31), False, -1),
    (91, "large", dt.date(9999, 12, 31), Decimal("-999999999999.999999"), MOMENT, None, 2**62),
    (92, None, None, None, None, None, None),
]
both = pytest.mark.parametrize("format", ["delta", "parquet"])


def values(rows) -> set[tuple]:
    return {tuple(row) for row in rows}


@both
def test_every_value_comes_back(save, rows, locate, table, tmp_path, format):
    location = locate(format, tmp_path / "a table")
    by = ("name", "day", "amount", "at", "paid", "n")
    written = save(ROWS, location, schema=SCHEMA, partition_by=by)
    assert written.rows == len(ROWS)
    found = rows(location, table(**dict(zip(written.columns, TYPES, strict=True))))
    assert values(found) == values(ROWS)
    if format == "delta":
        other = DeltaTable(tmp_path / "a table")
        assert (other.metadata().partition_columns, other.count()) == (list(by), len(ROWS))
        found = pa.table(other.get_add_actions(flatten=True))["partition.name"].to_pylist()
        assert set(found) == {*NAMES, "tiny", "large", None}


@both
@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_would_become_null_is_refused(save, locate, tmp_path, format, value):
    location = locate(format, tmp_path / "t")
    message = refusal(
        save, [(1, "x"), (2, value)], location, schema="id bigint, region string", partition_by=("region",)
    )
    shown = f"the text '{value}'" if value else "an empty text"
    assert f"column 'region' of `partition_by` has {shown}" in message
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@both
def test_no_rows_are_still_a_typed_table(save, rows, locate, table, tmp_path, format):
    location = locate(format, tmp_path / "t")
    columns = dict(zip(SCHEMA.replace(",", "").split()[::2], TYPES, strict=True))
    assert save([], location, schema=SCHEMA, partition_by=("name", "day")).rows == 0
    assert rows(location, table(**columns)) == []
    save(ROWS[:1], location, mode="append", run="run-2", schema=SCHEMA, partition_by=("name", "day"))
    assert rows(location, table(**columns)) == ROWS[:1]


@both
def test_modes(save, rows, locate, table, tmp_path, format, run_id):
    location = locate(format, tmp_path / "t")
    options = {"schema": "id bigint, region string", "partition_by": ("region",)}
    of_region = table(id="integer", region="string")
    save([(1, "a"), (2, "b")], location, **options)
    save([(3, "a"), (4, None)], location, mode="append", run="run-2", **options)
    save([(3, "a"), (4, None)], location, mode="append", run="run-2", **options)
    assert sorted(rows(location, of_region), key=str) == [(1, "a"), (2, "b"), (3, "a"), (4, None)]
    second = Output(run_id("run-2"), 5, partition_by=("region",))
    assert FORMATS[format].has_written(location, second) is True
    assert sorted(rows(FORMATS[format].written_by(location, second), table(id="integer"))) == [(3,), (4,)]
    save([(5, "c")], location, run="run-3", **options)
    assert rows(location, of_region) == [(5, "c")]
    if format == "parquet":
        assert [path.name for path in (tmp_path / "t").iterdir()] == ["region=c"]


@both
def test_other_partitions_are_refused(save, rows, locate, table, tmp_path, format):
    location = locate(format, tmp_path / "t")
    schema = "id bigint, region string, kind string"
    save([(1, "a", "k")], location, schema=schema, partition_by=("region",))
    options = {"mode": "append", "run": "run-2", "schema": schema}
    message = refusal(save, [(2, "a", "k")], location, partition_by=("region", "kind"), **options)
    assert message.endswith("is partitioned by region, but the output has `partition_by: [region, kind]`")
    assert "but the output has no `partition_by`" in refusal(save, [(2, "a", "k")], location, **options)
    assert rows(location, table(id="integer")) == [(1,)]
    save([(1, "a", "k")], locate(format, tmp_path / "u"), schema=schema)
    message = refusal(save, [(2, "a", "k")], locate(format, tmp_path / "u"), partition_by=("kind",), **options)
    assert "is not partitioned" in message


def test_files_of_others_in_a_partition_are_in_the_way(save, locate, tmp_path):
    location = locate("parquet", tmp_path / "t")
    options = {"schema": "id bigint, region string", "partition_by": ("region",)}
    save([(1, "a")], location, **options)
    (tmp_path / "t" / "region=a" / "note.txt").write_text("mine")
    assert "'region=a/note.txt'" in refusal(save, [(2, "b")], location, run="run-2", **options)
    (tmp_path / "t" / "region=a" / "note.txt").unlink()
    (tmp_path / "t" / "region=b" / "c").mkdir(parents=True)
    assert "'region=b/c/'" in refusal(save, [(2, "b")], location, run="run-2", **options)


def test_a_period_is_replaced_in_a_partitioned_table(save, locate, tmp_path):
    """A partition by period is removed by its value; one by another column by the statistics of its files."""
    for by in ("_period", "region"):
        location, path = locate("delta", tmp_path / by), tmp_path / by
        options = {"schema": "id bigint, _period string, region string", "partition_by": (by,)}
        save([(1, "2026-01", "a"), (2, "2026-02", "a"), (3, None, "b"), (4, "2026-01", "b")], location, **options)
        options |= {"mode": "replace_period", "run": "run-2", "periods": periods("2026-01")}
        assert save([(9, "2026-01", "c")], location, **options).periods == ("2026-01",)
        assert ids(path) == [("", 3), ("2026-01", 9), ("2026-02", 2)]
        assert DeltaTable(path).metadata().partition_columns == [by]
    save([], locate("delta", tmp_path / "_period"), **{**options, "run": "run-3", "partition_by": ("_period",)})
    assert ids(tmp_path / "_period") == [("", 3), ("2026-02", 2)]


def test_a_partitioned_table_of_another_program(save, rows, locate, table, tmp_path):
    path: Path = tmp_path / "t"
    data = pa.table({"id": [1, 2], "region": ["a b", None], "_period": ["2026-01", "2026-02"]})
    write_deltalake(path, data, partition_by=["region"])
    location = locate("delta", path)
    options = {"schema": "id bigint, region string, _period string", "partition_by": ("region",)}
    save([(3, "a b", "2026-01")], location, mode="replace_period", periods=periods("2026-01"), **options)
    assert ids(path) == [("2026-01", 3), ("2026-02", 2)]
    save([(4, "c/d", "2026-03")], location, run="run-2", **options)
    assert rows(location, table(id="integer", region="string")) == [(4, "c/d", "2026-03")]
