"""Bounds of validity that are timestamps: each row is valid on the days at whose beginning it is valid."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallybook.model.columns import DATE, ColumnType
from tallybook.rows.system import rows_of_period
from tallybook.scenarios.values import read_given
from tallybook.storage import read_all

BOUNDS = [
    dt.datetime(2026, 1, 1),
    dt.datetime(2026, 1, 1, 0, 0, 0, 1),
    dt.datetime(2026, 1, 2, 12),
    dt.datetime(2026, 1, 3, 23, 59, 59, 999999),
    dt.datetime(2026, 1, 6),
    None,
]
DAYS = [dt.date(2026, 1, day) for day in range(1, 9)]


def valid(rows, day):
    """The rows that are valid when a day begins."""
    begin = dt.datetime.combine(day, dt.time())
    return [row for row, start, end in rows if start <= begin and (end is None or end > begin)]


@pytest.fixture
def rates(table):
    return table("bitemporal", id="integer").model_copy(
        update={"valid_from_column": "since", "valid_to_column": "until"}
    )


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_one_of_the_rows_that_follow_each_other_is_valid_on_every_day(spark, locate, rates, tmp_path, zone):
    rows = [(id, start, end) for id, (start, end) in enumerate(pairwise(BOUNDS))]
    type = pa.timestamp("us", zone)
    columns = {
        "id": [row[0] for row in rows],
        "since": pa.array(BOUNDS[:-1], type),
        "until": pa.array(BOUNDS[1:], type),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    frame = read_all(spark, [locate("parquet", tmp_path / "a.parquet")], rates).cache()
    for day in DAYS:
        found = [row.id for row in rows_of_period(frame, rates, [], day).orderBy("id").collect()]
        assert found == valid(rows, day) and len(found) == 1
    frame.unpersist()


def test_dates_and_timestamps_may_be_mixed(spark, locate, rates, text, tmp_path):
    text("rates/a.csv", "id,since,until", "1,2026-01-01,2026-01-31T23:59:59Z", "2,2026-02-01 00:00:00,")
    text("rates/b.csv", "id,since,until", "3,2026-01-01T08:00:00+09:00,9999-12-31 23:59:59")
    frame = read_all(spark, [locate("csv", tmp_path / "rates")], rates)
    assert sorted(tuple(row) for row in frame.select("id", "_valid_from", "_valid_to").collect()) == [
        (1, dt.date(2026, 1, 1), dt.date(2026, 2, 1)),
        (2, dt.date(2026, 2, 1), None),
        (3, dt.date(2026, 1, 1), dt.date(9999, 12, 31)),
    ]


def test_the_same_column_may_be_declared_with_its_time(rows, locate, table, tmp_path):
    pq.write_table(pa.table({"since": [BOUNDS[2]], "until": pa.array([None], pa.date32())}), tmp_path / "a.parquet")
    rates = table("bitemporal", since="timestamp").model_copy(
        update={"valid_from_column": "since", "valid_to_column": "until"}
    )
    local = dt.datetime.now().astimezone().utcoffset()
    assert rows(locate("parquet", tmp_path / "a.parquet"), rates) == [(BOUNDS[2] + local, dt.date(2026, 1, 3), None)]


def test_what_is_neither_is_refused(refused, locate, rates, text, tmp_path):
    text("a.csv", "id,since,until", "1,soon,")
    problem = refused(locate("csv", tmp_path / "a.csv"), rates)
    assert (problem.type, "'soon'" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-01-31", dt.date(2026, 1, 31)),
        ("2026-01-31T00:00:00Z", dt.date(2026, 1, 31)),
        ("2026-01-31T00:00:01", dt.date(2026, 2, 1)),
        ("9999-12-31T23:59:59Z", dt.date(9999, 12, 31)),
        (None, None),
    ],
)
def test_rows_of_a_scenario_count_alike(given, day):
    assert read_given("_valid_to", given, DATE) == day
    if given and "T" in given:
        with pytest.raises(ValueError, match="not a date"):
            read_given("day", given, ColumnType("date"))
