"""Details raised inside a plan come back, and no value can pass for them."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tallybook.rows import raising as module
from tallybook.rows.raising import parse_raised, raising, raising_sql

FORGED = f'[USER_RAISED_EXCEPTION] {module.MARK}{{"type": "JoinNotUnique"}}'
"""What a value would have to be that knew the mark of this process."""


def failure(frame):
    with pytest.raises(Exception) as caught:
        frame.collect()
    return caught.value


def test_details_survive_the_trip_through_spark(spark):
    nasty = f'a "quoted" }}\n{{ \\ é\x1b {FORGED} ;00;'
    rows = spark.createDataFrame([(nasty, None)], "value string, nothing string")
    failing = raising("DataLoadError", table='or"ders', value=F.col("value"), nothing=F.col("nothing"))
    error = failure(rows.select(F.coalesce(F.col("nothing"), failing)))
    assert parse_raised(error) == {"type": "DataLoadError", "table": 'or"ders', "value": nasty}


def test_details_raised_in_sql_come_back_too(spark):
    error = failure(spark.sql("SELECT 'K1' AS k").selectExpr(raising_sql("JoinNotUnique", alias="'c'", key="k")))
    assert parse_raised(error) == {"type": "JoinNotUnique", "alias": "c", "key": "K1"}


def test_a_long_value_is_cut_and_leaves_room_for_the_other_details(spark):
    row = spark.createDataFrame([("x" * 1_000_000,)], "value string")
    raised = parse_raised(failure(row.select(raising("DataLoadError", table="orders", value=F.col("value")))))
    assert raised == {"type": "DataLoadError", "table": "orders", "value": "x" * 200}


def test_what_spark_cuts_off_is_left_out():
    whole = '{"type": "DataLoadError", "table": "orders"}7B2276616C7565223A2258227D;'
    assert module._details(whole) == {"type": "DataLoadError", "table": "orders", "value": "X"}
    assert module._details(whole[:-5] + "...") == {"type": "DataLoadError", "table": "orders"}
    assert module._details(whole[:30] + "...") is None


def test_the_mark_is_of_the_process_not_of_the_plan():
    """Spark compiles generated code anew when a literal in it is another one."""
    assert module.head("DataLoadError", {}) == module.head("DataLoadError", {})
    assert len(module.MARK) > 20


@pytest.mark.parametrize("expression", ["CAST(value AS BIGINT)", "raise_error(concat('x ', value))"])
def test_a_value_forges_nothing_even_if_it_knows_the_mark(spark, expression):
    row = spark.createDataFrame([(FORGED,)], "value string")
    error = failure(row.selectExpr(expression))
    assert FORGED in str(error) and parse_raised(error) is None


def test_a_plan_that_spark_prints_has_raised_nothing(spark):
    checked = spark.range(2).select(F.when(F.col("id") > 5, raising("DataLoadError")).otherwise(F.col("id")).alias("v"))
    with pytest.raises(AnalysisException) as caught:
        checked.filter(F.col("v") + 1).collect()
    assert module.MARK in str(caught.value) and parse_raised(caught.value) is None


def test_a_branch_not_taken_raises_nothing(spark):
    value = F.when(F.col("id") > 5, raising("DataLoadError")).otherwise(F.col("id"))
    assert spark.range(2).select(value.alias("id")).collect() == [(0,), (1,)]


@pytest.mark.parametrize(
    "message",
    ["", "a failure", module.MARK, '[USER_RAISED_EXCEPTION] TALLYBOOK:{"type": "x"}'],
    ids=["nothing", "any", "the mark alone", "a mark of another process"],
)
def test_other_failures_are_not_taken_for_ours(message):
    assert parse_raised(Exception(message)) is None


def test_an_error_around_ours_is_looked_into():
    inner = f'Job aborted: [USER_RAISED_EXCEPTION] {module.MARK}{{"type": "JoinNotUnique"}} SQLSTATE: P0001'
    assert parse_raised(Exception(inner)) == {"type": "JoinNotUnique"}
