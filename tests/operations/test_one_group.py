"""Aggregates whose keys have one value in all rows: one group, and none where there are no rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.kit.operations import aggregate, applied, orders, rows, update


def test_one_group_of_all_rows(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1), ("B", "APAC", "active", 5, 2))
    total = applied(given, aggregate(["_period", "_source_table"], total="SUM(amount)", n="COUNT(*)"))
    summary = total.filter("_operation_seq > 0")
    assert rows(summary, "_period", "total", "n", "order_id") == [("2026-01", "15.00", 2, None)]
    capsys.readouterr()
    total.explain()
    assert "SinglePartition" in capsys.readouterr().out


def test_no_rows_make_no_group(spark: SparkSession) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1))
    nothing = aggregate(["_period"], "amount > 100", total="SUM(amount)", n="COUNT(*)")
    assert applied(given, nothing).filter("_operation_seq > 0").isEmpty()


def test_a_result_that_cannot_be_computed_without_rows(spark: SparkSession) -> None:
    """The day before the first one would be outside the calendar if no rows were counted."""
    given = orders(spark, ("A", "EMEA", "active", 10, 1))
    day = 'DATEADD(DATE("0001-01-01"), COUNT(*) - 1)'
    assert applied(given, aggregate(["_period"], "amount > 100", day=day)).filter("_operation_seq > 0").isEmpty()
    summary = applied(given, aggregate(["_period"], "amount > 1", day=day)).filter("_operation_seq > 0")
    assert summary.selectExpr("CAST(day AS string)").first()[0] == "0001-01-01"


def test_a_key_that_is_null_in_all_rows(spark: SparkSession) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1), ("B", "APAC", "active", 5, 2))
    twice = applied(
        given,
        aggregate(["region"], total="SUM(amount)"),
        aggregate(["order_id"], "_operation_seq > 0", all="SUM(total)"),
    )
    assert rows(twice.filter("_operation_seq = 2"), "order_id", "all") == [(None, "15.00")]


def test_the_time_of_the_run_as_a_key(spark: SparkSession) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1), ("B", "APAC", "active", 5, 2))
    sums = applied(given, update(amount="amount + 1"), aggregate(["_created_at"], total="SUM(amount)"))
    assert rows(sums.filter("_operation_seq = 2"), "total") == [("17.00",)]
