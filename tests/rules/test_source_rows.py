"""What sources give to joins and appends, shown on rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.test_failures import Explain, explained
from tests.kit.operations import append, applied, orders, rows

__all__ = ["explained"]

HEADS = {"group_by": ["region"], "aggregations": [{"column": "heads", "expression": "SUM(n)"}]}


def joined(value: str, **source: Any) -> dict[str, Any]:
    join = {"alias": "h", "dataset_id": "heads", "on": "orders.region = h.region"} | source
    assignments = [{"column": "x", "expression": value}]
    return {"type": "update", "arguments": {"joins": [join], "assignments": assignments}}


def heads(spark: SparkSession) -> Any:
    data = [("EMEA", "actual", 1, False), ("EMEA", "actual", 2, False), ("EMEA", "plan", 9, False)]
    data += [("APAC", "actual", 4, False), ("APAC", "actual", 8, True)]
    return spark.createDataFrame(data, "region string, kind string, n bigint, _deleted boolean")


def test_a_join_and_an_append_read_the_selected_and_aggregated_rows(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "APAC", "on", 10, 1), ("C", "AMER", "on", 10, 1))
    source = {"selector": 'kind = "actual"', "aggregation": HEADS}
    after = applied(frame, joined("h.heads", **source), sources={"heads": heads(spark)})
    assert rows(after, "order_id", "x") == [("A", "3"), ("B", "4"), ("C", None)]
    results = [{"column": "quantity", "expression": "SUM(n)"}]
    source = {"dataset_id": "heads", "selector": 'kind = "actual"', "aggregation": HEADS | {"aggregations": results}}
    after = applied(frame, append("heads") | {"arguments": {"source": source}}, sources={"heads": heads(spark)})
    assert rows(after.where("_operation_seq = 1"), "region", "quantity") == [("APAC", 4), ("EMEA", 3)]


def test_a_selector_makes_a_join_unique(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    operation = joined("h.n", selector='h.kind = "plan" AND _row_id IS NOT NULL')
    assert rows(applied(frame, operation, sources={"heads": heads(spark)}), "x") == [(9,)]


def test_frames_of_the_caller_are_read_for_other_periods(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    data = [("EMEA", 1, "2025-01"), ("EMEA", 2, "2025-12"), ("EMEA", 4, "2026-01")]
    months = spark.createDataFrame(data, "region string, n bigint, _period string")
    for period, n in {"prior": 2, "same_last_year": 1, "next": None}.items():
        operation = joined("h.n", dataset_id="months", period=period)
        assert rows(applied(frame, operation, sources={"months": months}), "x") == [(n,)]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"selector": "TO_INTEGER(kind) = 1"}, "selector"),
        ({"aggregation": HEADS | {"aggregations": [{"column": "n", "expression": "SUM(TO_INTEGER(kind))"}]}},
         "aggregation.aggregations[0].expression"),
    ],
    ids=["selector", "aggregation"],
)  # fmt: skip
def test_a_failing_expression_of_a_source_is_named(
    spark: SparkSession, explained: Explain, source: dict[str, Any], path: str
) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    problem = explained(frame, joined("h.n + 1", **source), heads=heads(spark))
    assert (problem.type, problem.seq, problem.path) == ("EvaluationError", 10, f"arguments.joins[0].{path}")
    assert problem.message in [f"TO_INTEGER: '{kind}' is not a valid integer" for kind in ("actual", "plan")]
