"""A column in the file and in the names of its folders: both must say the same."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

WRITERS = {"parquet": pq.write_table, "orc": orc.write_table}


@pytest.fixture(params=["parquet", "orc"])
def lake(request, tmp_path, locate):
    """`lake({"month=01": {"id": [1]}})`: the location of files in folders."""

    def make(folders):
        for folder, columns in folders.items():
            path = tmp_path / "lake" / folder
            path.mkdir(parents=True)
            WRITERS[request.param](pa.table(columns), path / f"a.{request.param}")
        return locate(request.param, tmp_path / "lake")

    return make


def test_they_agree(lake, rows, table):
    location = lake({
        "year=2026/month=01": {"id": [1], "month": pa.array([1], pa.int32())},
        "year=2026/month=02": {"id": [2], "month": pa.array([2], pa.int32())},
    })  # fmt: skip
    orders = table(id="integer", month="integer", year="integer")
    assert sorted(rows(location, orders)) == [(1, 1, 2026), (2, 2, 2026)]


def test_values_with_odd_characters_agree(lake, rows, table):
    location = lake({
        "region=a%2Fb c": {"id": [1], "region": ["a/b c"]},
        "region=__HIVE_DEFAULT_PARTITION__": {"id": [2], "region": pa.array([None], pa.string())},
    })  # fmt: skip
    assert sorted(rows(location, table(id="integer", region="string"))) == [(1, "a/b c"), (2, None)]


@pytest.mark.parametrize("value", [2, None])
def test_they_disagree(lake, refused, table, value):
    location = lake({"month=01": {"id": [1, 2], "month": pa.array([1, value], pa.int64())}})
    problem = refused(location, table(id="integer", month="integer"))
    assert problem.type == "DataLoadError"
    assert f"'{value or 'NULL'} (its folder says month=01)'" in problem.message


def test_dates_are_compared_as_dates(lake, rows, refused, table):
    day = dt.date(2026, 1, 31)
    location = lake({"day=2026-01-31": {"id": [1], "day": [day]}})
    assert rows(location, table(id="integer", day="date")) == [(1, day)]


def test_nobody_minds_a_column_that_nobody_declares(lake, rows, table):
    assert rows(lake({"month=01": {"id": [1], "month": [7]}}), table(id="integer")) == [(1,)]


def test_names_that_differ_only_in_case(lake, refused, table):
    location = lake({"Month=01": {"id": [1], "month": [1]}})
    assert refused(location, table(id="integer", month="integer")).type == "SchemaMismatch"


def test_folders_that_the_location_names_are_columns(lake, rows, refused, table, tmp_path):
    whole = lake({f"year=2026/month={month}": {"id": [int(month)]} for month in ("01", "02")})
    january = replace(whole, target=f"{whole.target}/year=2026/month=01", period="2026-01")
    assert rows(january, table(id="integer", year="integer", month="string")) == [(1, 2026, "01")]
    year = replace(whole, target=f"{whole.target}/year=2026")
    assert sorted(rows(year, table(month="integer", year="integer"))) == [(1, 2026), (2, 2026)]
    files = replace(whole, target=f"{whole.target}/year=2026/month=*/a.*")
    assert sorted(rows(files, table(id="integer", year="integer"))) == [(1, 2026), (2, 2026)]
    assert refused(files, table(month="string")).message.endswith("has no column 'month' of table 'orders'")
    assert "row 1: '2026'" in refused(january, table(year="boolean")).message


def test_a_folder_that_the_location_names_does_not_replace_a_column_or_the_period(lake, rows, table):
    whole = lake({"date=20260131/month=01": {"id": [1], "date": [dt.date(2026, 1, 31)]}})
    january = replace(whole, target=f"{whole.target}/date=20260131/month=01", period="2026-01")
    assert rows(january, table(id="integer", date="date")) == [(1, dt.date(2026, 1, 31))]
    by_period = table("period", id="integer").model_copy(update={"period_column": "month"})
    assert rows(january, by_period) == [(1, "2026-01")]
