"""A folder called like a pattern is that folder; below it a pattern is still a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.storage import write
from tallybook.storage.files import is_pattern, reader_path
from tallybook.storage.inputs import fingerprint

FOLDER = "Budget [final] {a,b} *x]"


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
def test_what_is_written_there_is_read_there(spark, rows, locate, table, run_id, tmp_path, format):
    location = locate(format, tmp_path / (FOLDER if format == "delta" else f"{FOLDER}?") / "out")
    write(spark, spark.range(2).coalesce(1), location, mode="overwrite", run_id=run_id("run-1"), seq=1)
    assert sorted(rows(location, table(id="integer"))) == [(0,), (1,)]
    assert len(fingerprint(spark, location)) == (0 if format == "delta" else 1)


def test_a_pattern_below_it(spark, rows, locate, table, text):
    for name in ("a1", "a2", "b1"):
        path = text(f"{FOLDER}/{name}.csv", "id", name[-1])
    text("Budget f a x/a3.csv", "id", "3")
    some = locate("csv", path.with_name("a[12].csv"))
    assert rows(some, table(id="integer")) == [(1,), (2,)]
    assert [Path(found["file"]).name for found in fingerprint(spark, some)] == ["a1.csv", "a2.csv"]
    assert rows(locate("csv", path.with_name("a9.csv"), on_missing="empty"), table(id="integer")) == []


def test_columns_in_folder_names_below_it(rows, locate, table, text, tmp_path):
    text(f"{FOLDER}/month=01/a.csv", "id,n", "1,5")
    text(f"{FOLDER}/month=02/b.csv", "n,id", "6,2")
    assert sorted(rows(locate("csv", tmp_path / FOLDER), table(id="integer", month="string"))) == [(1, "01"), (2, "02")]


def test_what_of_a_place_is_a_pattern(locate, tmp_path):
    (tmp_path / "a[1]").mkdir()
    for scheme, given in (("", tmp_path), ("file:", f"file:{tmp_path}"), ("file:", f"file://{tmp_path}")):
        there, below = locate("csv", f"{given}/a[1]/"), locate("csv", f"{given}/a[1]/b[2]/c.csv")
        assert (reader_path(there), is_pattern(there)) == (f"{scheme}{tmp_path}/a\\[1\\]", False)
        assert (reader_path(below), is_pattern(below)) == (f"{scheme}{tmp_path}/a\\[1\\]/b[2]/c.csv", True)
    assert reader_path(locate("csv", "s3a://bucket/a[1]/*.csv")) == "s3a://bucket/a[1]/*.csv"
