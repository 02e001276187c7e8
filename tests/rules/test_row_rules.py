"""Rules that are shown on rows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.kit.operations import NOW, aggregate, append, applied, delete, orders, rows, update
from tests.rules.kit import rule

from tallybook.errors import ValidationError
from tallybook.model.columns import SYSTEM_COLUMNS


@rule("BR-004", "BR-005")
def test_deleted_rows_are_invisible_and_no_selector_means_all_others(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "EMEA", "on", 20, 1, True), ("C", "APAC", "on", 5, 1, None))
    after = applied(frame, update(amount="0"), delete('region = "APAC"'), update(amount="amount + 1"),
                    aggregate(["region"], n="COUNT(*)"))  # fmt: skip
    assert rows(after, "order_id", "amount", "_deleted", "n") == [
        ("A", "1.00", False, None),
        ("B", "20.00", True, None),
        ("C", "0.00", True, None),
        (None, None, False, 1),
    ]


@rule("BR-008b", "TEMPORAL-1", "TEMPORAL-2", "TEMPORAL-3")
def test_joined_and_appended_rows_are_those_of_the_period(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    rates = spark.createDataFrame([("A", 1, "2025-12"), ("A", 2, "2026-01")], "id string, rate bigint, _period string")
    joined = applied(
        frame,
        {"type": "update", "arguments": {"joins": [{"alias": "r", "dataset_id": "rates", "on": "order_id = r.id"}],
                                         "assignments": [{"column": "quantity", "expression": "r.rate"}]}},
        sources={"rates": rates},
    )  # fmt: skip
    assert rows(joined, "quantity") == [(2,)]
    more = orders(spark, ("B", "EMEA", "on", 1, 1)).drop("_deleted")
    other = more.selectExpr("order_id", "region", "status", "amount", "quantity", "'2025-12' AS _period")
    assert rows(applied(frame, append("more"), sources={"more": more.union(other)}), "order_id") == [("A",), ("B",)]
    timeless = more.drop("_period")
    assert rows(applied(frame, append("t"), sources={"t": timeless}), "order_id", "_period") == [
        ("A", "2026-01"),
        ("B", "2026-01"),
    ]


@rule("BR-009", "INV-1")
def test_aggregate_appends_and_removes_nothing(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "EMEA", "on", 20, 2), ("C", "APAC", "on", 5, 3))
    after = applied(frame, aggregate(["region"], total="SUM(amount)"))
    assert after.count() == 3 + 2
    assert rows(after, "order_id", "region", "amount", "total") == [
        ("A", "EMEA", "10.00", None),
        ("B", "EMEA", "20.00", None),
        ("C", "APAC", "5.00", None),
        (None, "APAC", None, "5.00"),
        (None, "EMEA", None, "30.00"),
    ]


def test_a_summary_row_carries_every_key_it_is_grouped_by(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "EMEA", "on", 20, 2), ("C", "APAC", "on", 5, 3))
    extra = orders(spark, ("D", "EMEA", "on", 7, 1)).drop("_deleted")
    keys = ["_source_dataset", "_source_table", "_labels", "_operation_seq", "_period", "_created_at", "_deleted"]
    after = applied(
        frame,
        update('region = "EMEA"', _labels='"big"'),
        append("extra"),
        aggregate(keys, total="SUM(amount)"),
        sources={"extra": extra},
    )
    now = NOW.replace(tzinfo=None)
    summaries = after.where("total IS NOT NULL")
    assert rows(summaries, *["_source_dataset_id", *keys[1:]], "total") == [
        ("extra", "extra", "", 2, "2026-01", now, False, "7.00"),
        ("orders", "orders", "", 0, "2026-01", now, False, "5.00"),
        ("orders", "orders", "big", 0, "2026-01", now, False, "30.00"),
    ]
    by_id = applied(frame, aggregate(["_row_id"], total="SUM(amount)"))
    ids = [row[0] for row in rows(by_id, "_row_id")]
    assert len(set(ids)) == len(ids) == 6


@rule("INV-2", "INV-3", "INV-4", "INV-5", "INV-6")
def test_summary_rows_are_whole_rows(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "APAC", "on", 20, 2))
    after = applied(frame, aggregate(["region", "_period"], total="SUM(amount)"), aggregate(["region"], n="COUNT(*)"))
    ids = [row[0] for row in rows(after, "_row_id")]
    assert len(set(ids)) == len(ids) == 6
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id) for id in ids)
    assert after.columns == ["order_id", "region", "status", "amount", "quantity", "total", "n", *SYSTEM_COLUMNS]
    summaries = after.where("_operation_seq > 0")
    system = [name for name in SYSTEM_COLUMNS if name not in ("_period", "_row_id")]
    moment = NOW.replace(tzinfo=None)
    assert set(rows(summaries, *system)) == {
        ("orders", "orders", 1, moment, moment, False, ""),
        ("orders", "orders", 2, moment, moment, False, ""),
    }
    assert rows(summaries, "_operation_seq", "_period") == [(1, "2026-01")] * 2 + [(2, None)] * 2
    assert rows(summaries, "order_id", "status", "amount", "quantity") == [(None, None, None, None)] * 4


@rule("BR-010", "ALIGN-2", "ALIGN-3")
def test_appended_rows_fill_missing_columns_with_null_in_the_working_order(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    more = spark.createDataFrame([(7, "APAC")], "quantity bigint, region string")
    after = applied(frame, append("more"), sources={"more": more})
    assert after.columns[:5] == ["order_id", "region", "status", "amount", "quantity"]
    assert rows(after.where("_operation_seq = 1"), "order_id", "region", "amount", "quantity", "_source_dataset_id",
                "_source_table", "_deleted", "_labels") == [
        (None, "APAC", None, 7, "more", "more", False, "")
    ]  # fmt: skip


def test_appended_rows_may_be_summarised_first(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    more = orders(spark, ("B", "APAC", "on", 5, 2), ("C", "APAC", "on", 7, 3), ("D", "EMEA", "off", 9, 4))
    results = [{"column": "amount", "expression": "SUM(amount)"}, {"column": "quantity", "expression": "COUNT(*)"}]
    operation = append("more", source_selector='status = "on"',
                       aggregation={"group_by": ["region"], "aggregations": results})  # fmt: skip
    after = applied(frame, operation, sources={"more": more.drop("_deleted")})
    shown = ("order_id", "region", "amount", "quantity", "_period", "_source_dataset_id", "_operation_seq")
    assert rows(after, *shown) == [
        ("A", "EMEA", "10.00", 1, "2026-01", "orders", 0),
        (None, "APAC", "12.00", 2, "2026-01", "more", 1),
    ]


@rule("ALIGN-1")
def test_extra_columns_are_all_named(spark: SparkSession) -> None:
    more = spark.createDataFrame([(1, "x", "y")], "quantity bigint, colour string, size string")
    with pytest.raises(ValidationError) as caught:
        applied(orders(spark), append("more"), sources={"more": more})
    assert caught.value.problem.type == "ColumnMismatch"
    assert "'colour', 'size'" in caught.value.problem.message


@rule("VR-008")
def test_selected_rows_get_the_run_timestamp_and_others_keep_theirs(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "APAC", "on", 20, 2))
    old = frame.selectExpr("*", "timestamp '2020-01-01' AS _created_at", "timestamp '2020-01-02' AS _updated_at")
    after = applied(old, update('region = "EMEA"', amount="1"))
    found = {row["order_id"]: (row["_created_at"].year, row["_updated_at"].year) for row in after.collect()}
    assert found == {"A": (2020, 2026), "B": (2020, 2020)}


@rule("EDGE-zero-rows")
def test_no_rows_in_no_rows_out(spark: SparkSession) -> None:
    assert applied(orders(spark), aggregate(["region"], n="COUNT(*)")).count() == 0
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    assert applied(frame, aggregate(["region"], 'region = "X"', n="COUNT(*)")).count() == 1


@rule("EDGE-single-group")
def test_one_group_is_one_row(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "EMEA", "on", 20, 2))
    assert applied(frame, aggregate(["region"], n="COUNT(*)")).count() == 3


@rule("EDGE-null-group")
def test_null_is_a_group_of_its_own(spark: SparkSession) -> None:
    frame = orders(spark, ("A", None, "on", 10, 1), ("B", None, "on", 20, 2), ("C", "EMEA", "on", 1, 2))
    after = applied(frame, aggregate(["region"], total="SUM(amount)")).where("_operation_seq = 1")
    assert rows(after, "region", "total") == [("EMEA", "1.00"), (None, "30.00")]


@rule("EDGE-null-values", "EDGE-all-null")
def test_aggregates_pass_over_nulls(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "E", "on", 10, None), ("B", "E", "on", None, None), ("C", "E", "on", 5, None))
    after = applied(
        frame,
        aggregate(["region"], s="SUM(amount)", a="AVG(amount)", c="COUNT(amount)", n="COUNT(*)", lo="MIN_AGG(amount)",
                  hi="MAX_AGG(amount)", s0="SUM(quantity)", a0="AVG(quantity)", c0="COUNT(quantity)",
                  m0="MIN_AGG(quantity)"),
    ).where("_operation_seq = 1")  # fmt: skip
    [found] = rows(after, "s", "c", "n", "lo", "hi", "s0", "a0", "c0", "m0")
    assert found == ("15.00", 2, 3, "5.00", "10.00", None, None, 0, None)
    assert [float(row[0]) for row in after.select("a").collect()] == [7.5]


@rule("V-005")
def test_a_selector_that_is_null_does_not_select(spark: SparkSession) -> None:
    frame = orders(spark, ("A", None, "on", 10, 1), ("B", "EMEA", "on", 20, 2))
    assert rows(applied(frame, update('region <> "APAC"', amount="0")), "order_id", "amount") == [
        ("A", "10.00"),
        ("B", "0.00"),
    ]


@pytest.mark.parametrize("nobody", ["NULL", "IF(TRUE, NULL)", "COALESCE(NULL, NULL)", "{{NOBODY}}"])
def test_a_selector_that_has_no_type_but_null_does_not_select(spark: SparkSession, nobody: str) -> None:
    frame = orders(spark, ("A", None, "on", 10, 1))
    nothing = (update(nobody, amount="0"), delete(nobody), aggregate(["region"], nobody, amount="SUM(amount)"))
    source = append("orders", source_selector=nobody)
    after = applied(frame, *nothing, source, selectors={"NOBODY": "NULL"})
    assert rows(after, "order_id", "amount", "_deleted") == [("A", "10.00", False)]


def test_expressions_see_the_row_before_the_operation(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 3))
    after = applied(frame, update("quantity = 3", quantity="quantity + 1", amount="quantity"))
    assert rows(after, "quantity", "amount") == [(4, "3.00")]


def test_two_matches_for_a_selected_row_end_the_run(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "APAC", "off", 20, 2))
    other = spark.createDataFrame([("B", 1), ("B", 2), ("A", 3)], "id string, v bigint")
    join = {"joins": [{"alias": "o", "dataset_id": "other", "on": "order_id = o.id"}],
            "assignments": [{"column": "quantity", "expression": "7"}]}  # fmt: skip
    selected = {"type": "update", "selector": 'status = "on"', "arguments": join}
    assert rows(applied(frame, selected, sources={"other": other}), "order_id", "quantity") == [("A", 7), ("B", 2)]
    with pytest.raises(PySparkException, match="JoinNotUnique"):
        applied(frame, {"type": "update", "arguments": join}, sources={"other": other}).collect()


def test_a_selector_may_read_what_its_operation_joins(spark: SparkSession) -> None:
    """And a later operation may join it again under the same name."""
    frame = orders(spark, ("a", "EMEA", "on", 10, 1), ("b", "APAC", "off", 20, 2), ("c", "APAC", "off", 20, 3))
    other = spark.createDataFrame([("A", 30), ("B", 10)], "id string, v bigint")

    def joined(selector: str, value: str) -> dict[str, Any]:
        arguments = {"joins": [{"alias": "o", "dataset_id": "other", "on": "UPPER(order_id) = o.id"}],
                     "assignments": [{"column": "quantity", "expression": value}]}  # fmt: skip
        return {"type": "update", "selector": selector, "arguments": arguments}

    after = applied(frame, joined("o.v > 20", "o.v"), joined("o.v < 20", "-o.v"), sources={"other": other})
    assert rows(after, "order_id", "quantity") == [("a", 30), ("b", -10), ("c", 3)]


def test_a_join_may_ask_for_more_than_equality(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 9), ("B", "EMEA", "on", 25, 9), ("C", "APAC", "on", 25, 9))
    listed = [("EMEA", 0, 20, 1), ("EMEA", 20, 50, 2), ("EMEA", 70, None, 3)]
    bands = spark.createDataFrame(listed, "area string, low bigint, high bigint, band bigint")

    def banded(on: str) -> list[tuple[Any, ...]]:
        arguments = {"joins": [{"alias": "b", "dataset_id": "bands", "on": on}],
                     "assignments": [{"column": "quantity", "expression": "b.band"}]}  # fmt: skip
        operation = {"type": "update", "arguments": arguments}
        return rows(applied(frame, operation, sources={"bands": bands}), "order_id", "quantity")

    assert banded("region = b.area AND amount >= b.low AND amount < b.high") == [("A", 1), ("B", 2), ("C", None)]
    assert banded("amount >= b.low AND amount < b.high") == [("A", 1), ("B", 2), ("C", 2)]
    with pytest.raises(PySparkException, match="JoinNotUnique"):
        banded("region = b.area AND b.low < 50")
