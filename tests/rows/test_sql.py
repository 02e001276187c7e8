from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession

from tallybook.model.columns import TIMESTAMP
from tallybook.rows import sql

ODD = ["", "plain-1", "it's", 'say "hi"', "back\\slash", "\\n", "line\nbreak", "${env}", "é🙂", "a`b", "--", "{x}"]


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_a_text_is_itself_whatever_the_session_says_of_backslashes(spark: SparkSession, escaped: str) -> None:
    setting = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(setting, escaped)
    try:
        (row,) = spark.range(1).selectExpr(*map(sql.text, ODD)).collect()
    finally:
        spark.conf.unset(setting)
    assert list(row) == ODD


def test_a_name_is_itself(spark: SparkSession) -> None:
    names = ["a b", "a.b", "a`b", "select", "_x"]
    frame = spark.range(1).toDF("a.b").selectExpr(*(f"`a.b` AS {sql.name(name)}" for name in names))
    assert frame.columns == names
    assert frame.selectExpr(*map(sql.name, names)).columns == names


@pytest.mark.parametrize("expands", ["true", "false"])
def test_spark_expands_nothing(spark: SparkSession, expands: str) -> None:
    names = ["${env:PATH}", "${spark:spark.app.name}", "${spark.app.name}", "a`${env:PATH}.b", "${", "plain"]
    spark.conf.set("spark.sql.variable.substitute", expands)
    try:
        frame = sql.select(spark.range(1), {name: sql.text(name) for name in names})
        assert frame.columns == names
        again = sql.select(frame, {name: f"upper({sql.name(name)})" for name in names})
        assert (again.columns, list(again.collect()[0])) == (names, [name.upper() for name in names])
        assert frame.selectExpr(*map(sql.name, names)).columns == names
    finally:
        spark.conf.unset("spark.sql.variable.substitute")


def test_a_moment_is_the_same_moment_whatever_timestamp_means(spark: SparkSession) -> None:
    moment = datetime(2026, 1, 31, 23, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5)))
    setting = "spark.sql.timestampType"
    spark.conf.set(setting, "TIMESTAMP_NTZ")
    try:
        frame = spark.range(1).selectExpr(f"{sql.timestamp(moment)} AS m", f"{sql.typed(sql.NULL, TIMESTAMP)} AS n")
        assert [field.dataType.simpleString() for field in frame.schema] == ["timestamp", "timestamp"]
        (row,) = frame.selectExpr("unix_micros(m) AS u").collect()
    finally:
        spark.conf.unset(setting)
    assert row.u == round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
