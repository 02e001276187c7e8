"""Facts raised inside a plan come back out of whatever text surrounds them."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tallybook.rows.raising import parse_raised, raising, raising_sql


def test_facts_survive_the_trip_through_spark(spark):
    nasty = 'a "quoted" }\n{ \\ é TALLYBOOK:'
    rows = spark.createDataFrame([(nasty, None)], "value string, nothing string")
    failing = raising("DataLoadError", table="orders", value=F.col("value"), nothing=F.col("nothing"))
    with pytest.raises(Exception) as caught:
        rows.select(F.coalesce(F.col("nothing"), failing)).collect()
    assert parse_raised(str(caught.value)) == {"type": "DataLoadError", "table": "orders", "value": nasty}


def test_facts_raised_in_sql_come_back_too(spark):
    with pytest.raises(Exception) as caught:
        spark.sql("SELECT 'K1' AS k").selectExpr(raising_sql("JoinNotUnique", alias="'c'", key="k")).collect()
    assert parse_raised(str(caught.value)) == {"type": "JoinNotUnique", "alias": "c", "key": "K1"}


def test_a_plan_that_spark_prints_has_raised_nothing(spark):
    checked = spark.range(2).select(F.when(F.col("id") > 5, raising("DataLoadError")).otherwise(F.col("id")).alias("v"))
    with pytest.raises(AnalysisException) as caught:
        checked.filter(F.col("v") + 1).collect()
    assert "TALLYBOOK:" in str(caught.value) and parse_raised(str(caught.value)) is None


def test_a_branch_not_taken_raises_nothing(spark):
    value = F.when(F.col("id") > 5, raising("DataLoadError")).otherwise(F.col("id"))
    assert spark.range(2).select(value.alias("id")).collect() == [(0,), (1,)]


@pytest.mark.parametrize(
    "message",
    ["", "a failure", "TALLYBOOK:", 'raise_error(USER_RAISED_EXCEPTION, map(errorMessage, TALLYBOOK:{"type": "x"}))'],
)
def test_other_failures_are_not_taken_for_ours(message):
    assert parse_raised(message) is None
