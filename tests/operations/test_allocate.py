"""allocate: shares that sum to the amount, to the last digit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.test_failures import Explain, explained
from tests.kit.operations import applied, orders, rows, update

from tallybook.errors import ValidationError

__all__ = ["explained"]


def allocate(selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    given = {"amount": "amount", "to": {"dataset_id": "heads"}, "driver": "targets.heads", **arguments}
    return {"type": "allocate", "arguments": given} | ({"selector": selector} if selector else {})


SET = [{"column": "region", "expression": "targets.centre"}]


def heads(spark: SparkSession, *given: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(given, "centre string, area string, heads bigint")


@pytest.fixture
def pool(spark: SparkSession) -> DataFrame:
    return orders(spark, ("A", "EMEA", "on", "100.00", 1), ("B", "APAC", "on", "-0.05", 2), ("C", "EMEA", "off", 7, 3))


@pytest.fixture
def targets(spark: SparkSession) -> DataFrame:
    return heads(spark, ("c1", "EMEA", 1), ("c2", "EMEA", 1), ("c3", "EMEA", 1), ("c4", "APAC", 5), ("c5", "APAC", 0))


def test_shares_are_exact_and_the_rest_goes_to_the_largest_fractions(pool: DataFrame, targets: DataFrame) -> None:
    after = applied(
        pool, allocate('status = "on"', match="orders.region = targets.area", set=SET), sources={"heads": targets}
    )
    new = after.filter("_operation_seq = 1")
    assert rows(new, "order_id", "region", "amount", "quantity", "_source_dataset_id", "_period") == [
        ("A", "c1", "33.34", 1, "orders", "2026-01"),
        ("A", "c2", "33.33", 1, "orders", "2026-01"),
        ("A", "c3", "33.33", 1, "orders", "2026-01"),
        ("B", "c4", "-0.05", 2, "orders", "2026-01"),
    ]
    assert len(rows(after.filter("_operation_seq = 0"), "order_id")) == 3
    assert len({row[0] for row in rows(after, "_row_id")}) == 7


def test_without_a_match_every_target_is_reached(spark: SparkSession, targets: DataFrame) -> None:
    one = orders(spark, ("A", "EMEA", "on", "0.03", 1))
    after = applied(one, allocate(set=SET), sources={"heads": targets})
    assert rows(after.filter("_operation_seq = 1"), "region", "amount") == [
        ("c1", "0.01"),
        ("c2", "0.00"),
        ("c3", "0.00"),
        ("c4", "0.02"),
    ]


@pytest.mark.parametrize(
    ("pool_rows", "left"),
    [
        ("keep", ["10.00", "6.67", "3.33"]),
        ("reverse", ["-10.00", "10.00", "6.67", "3.33"]),
        ("delete", ["6.67", "3.33"]),
    ],
)
def test_what_becomes_of_the_pool(spark: SparkSession, pool_rows: str, left: list[str]) -> None:
    targets = heads(spark, ("c1", "x", 2), ("c2", "x", 1))
    one = orders(spark, ("A", "EMEA", "on", "10.00", 1))
    after = applied(one, allocate(pool=pool_rows, set=SET), sources={"heads": targets})
    assert sorted(row[0] for row in rows(after.filter("NOT _deleted"), "amount")) == sorted(left)
    assert len(rows(after, "amount")) == (4 if pool_rows == "reverse" else 3)


def test_sources_are_selected_and_aggregated_and_other_columns_can_be_new(spark: SparkSession) -> None:
    targets = heads(spark, ("c1", "x", 2), ("c1", "x", 1), ("c2", "x", 1), ("c3", "no", 9))
    to = {
        "dataset_id": "heads",
        "selector": 'area = "x"',
        "aggregation": {"group_by": ["centre"], "aggregations": [{"column": "total", "expression": "SUM(heads)"}]},
    }
    new = [{"column": "share_of", "expression": "CONCAT(order_id, targets.centre)"}]
    one = orders(spark, ("A", "EMEA", "on", "10.00", 1))
    after = applied(one, allocate(to=to, driver="targets.total", set=new, pool="reverse"), sources={"heads": targets})
    assert rows(after, "amount", "share_of") == [("-10.00", None), ("10.00", None), ("2.50", "Ac2"), ("7.50", "Ac1")]


@pytest.mark.parametrize("type", ["decimal(38,10)", "decimal(38,0)", "decimal(20,16)", "decimal(9,2)", "bigint"])
@pytest.mark.parametrize("driver", ["decimal(38,18)", "decimal(10,4)", "bigint"])
def test_amounts_and_drivers_of_any_type(spark: SparkSession, type: str, driver: str) -> None:
    one = spark.sql(f"SELECT 'A' AS key, CAST(17 AS {type}) AS amount, '2026-01' AS _period")
    targets = spark.sql(f"SELECT id AS n, CAST(id AS {driver}) AS heads FROM range(1, 8)")
    after = applied(one, allocate(), sources={"heads": targets})
    shares = [row["amount"] for row in after.filter("_operation_seq = 1").collect()]
    assert sum(shares) == 17 and len(shares) == 7
    exact = {n: Decimal(17) * n / 28 for n in range(1, 8)}
    unit = Decimal(1).scaleb(-after.schema["amount"].dataType.scale) if "decimal" in type else 1
    assert all(abs(share - fair) < unit for share, fair in zip(sorted(shares), exact.values(), strict=True))


def test_the_smallest_integer_is_allocated(spark: SparkSession) -> None:
    one = spark.sql("SELECT 'A' AS key, -9223372036854775808L AS amount, '2026-01' AS _period")
    after = applied(one, allocate(), sources={"heads": heads(spark, ("c1", "x", 1))})
    assert [row["amount"] for row in after.collect()] == [-(2**63), -(2**63)]


def test_more_digits_than_a_decimal_holds_fail_and_are_never_rounded(spark: SparkSession, explained: Explain) -> None:
    one = spark.sql("SELECT 'A' AS key, CAST(17 AS decimal(20,18)) AS amount, '2026-01' AS _period")
    targets = spark.sql("SELECT id AS n, CAST(id || '.000000000000000001' AS decimal(38,18)) AS heads FROM range(1, 8)")
    problem = explained(one, allocate(), heads=targets)
    assert (problem.type, problem.seq, problem.path) == ("EvaluationError", 10, "arguments.driver")
    assert "does not fit into decimal(38,0)" in problem.message


@pytest.mark.parametrize(
    ("amount", "type", "drivers", "share"),
    [
        ("9999999999999999999999999999999999.99", "decimal(38,2)", "(1), (1)", "5000000000000000000000000000000000.00"),
        ("9" * 37, "decimal(38,0)", "(3), (4)", "4285714285714285714285714285714285714"),
        ("9" * 38, "decimal(38,0)", "(1)", "9" * 38),
        ("1234567.89", "decimal(38,18)", "(12.5), (250), (0)", "58788.947142857142857143"),
    ],
)
def test_amounts_of_up_to_38_digits(spark: SparkSession, amount: str, type: str, drivers: str, share: str) -> None:
    """More digits than Spark's quotient has, and drivers whose trailing zeros would leave no digits for the amount."""
    one = spark.sql(f"SELECT 'A' AS key, CAST('{amount}' AS {type}) AS amount, '2026-01' AS _period")
    targets = spark.sql(f"SELECT CAST(h AS decimal(38,18)) AS heads FROM VALUES {drivers} AS t(h)")
    after = applied(one, allocate(), sources={"heads": targets}).filter("_operation_seq = 1")
    found = [row["amount"] for row in after.collect()]
    assert sum(map(Fraction, found)) == Fraction(amount)
    assert Decimal(share) in found


def test_rows_of_every_segment_are_allocated_and_null_stays_null(spark: SparkSession) -> None:
    targets = heads(spark, ("c1", "x", 1), ("c2", "x", 1))
    two = orders(spark, ("A", "EMEA", "on", "1.01", 1), ("B", "EMEA", "on", None, 1))
    summary = {
        "type": "aggregate",
        "arguments": {"group_by": ["status"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
    }
    after = applied(
        two, summary, update("_operation_seq = 1", amount="amount * 2"), allocate(), sources={"heads": targets}
    )
    assert rows(after.filter("_operation_seq = 3"), "order_id", "amount") == [
        ("A", "0.50"),
        ("A", "0.51"),
        ("B", None),
        ("B", None),
        (None, "1.01"),
        (None, "1.01"),
    ]


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        ([("c1", "APAC", 1)], {"match": "orders.region = targets.area"}, "there is no target for the row with _row_id"),
        ([], {}, "there is no target for the row with _row_id"),
        ([("c1", "EMEA", 0), ("c2", "EMEA", 0)], {}, "all drivers are zero for the row with _row_id"),
        (
            [("c1", "EMEA", 1), ("c2", "EMEA", None)],
            {},
            "the driver of the target with centre c2, area EMEA, heads NULL is NULL",
        ),
        (
            [("c1", "EMEA", 1), ("c2", "EMEA", -3)],
            {},
            "the driver of the target with centre c2, area EMEA, heads -3 is -3",
        ),
    ],
)
def test_what_cannot_be_allocated_fails_the_run_and_is_named(
    spark: SparkSession, explained: Explain, given: list[Any], arguments: dict[str, Any], message: str
) -> None:
    one = orders(spark, ("A", "EMEA", "on", "10.00", 1))
    problem = explained(one, update(quantity="2"), allocate(**arguments), heads=heads(spark, *given))
    assert (problem.type, problem.seq) == ("AllocationFailed", 20)
    assert problem.message.startswith(message) and problem.hint
    without_target = "arguments.match" if "match" in arguments else None
    assert problem.path == (without_target if "no target" in message else "arguments.driver")


@pytest.mark.parametrize(
    ("arguments", "type", "message"),
    [
        ({"amount": "region"}, "TypeMismatch", "only numbers can be allocated"),
        ({"amount": "amout"}, "ColumnNotFound", "there is no column 'amout'"),
        ({"driver": "targets.centre"}, "TypeMismatch", "the driver has type string, but must be a number"),
        ({"driver": "targets.nothing"}, "ColumnNotFound", "nothing"),
        ({"match": "targets.heads"}, "InvalidSelector", "must be true or false"),
        ({"set": [{"column": "amount", "expression": "1"}]}, "DuplicateColumn", "gets the share of the amount"),
        ({"set": [{"column": "_row_id", "expression": '"x"'}]}, "SystemColumn", "_row_id"),
        ({"driver": "SUM(targets.heads)"}, "AggregateMisplaced", "SUM is an aggregate function"),
        ({"to": {"dataset_id": "nobody"}}, "DatasetNotFound", "nobody"),
        ({"to": {"dataset_id": "heads", "period": "prior"}}, "InvalidArguments", "has no time"),
    ],
)
def test_the_checker_finds_mistakes(
    pool: DataFrame, targets: DataFrame, arguments: dict[str, Any], type: str, message: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        applied(pool, allocate(**arguments), sources={"heads": targets})
    assert [problem.type for problem in refused.value.problems] == [type]
    assert message in refused.value.problem.message and refused.value.problem.hint


def test_updates_that_join_something_else_as_targets_do_not_disturb_it(spark: SparkSession, pool: DataFrame) -> None:
    """A table that several updates join in the same way stays with the rows, but not under the alias of the targets."""
    targets = heads(spark, ("c1", "EMEA", 1), ("c2", "APAC", 2))
    joined = update(region="targets.centre")
    joined["arguments"]["joins"] = [{"alias": "targets", "dataset_id": "heads", "on": "targets.heads = quantity"}]
    same = update(status="targets.area")
    same["arguments"]["joins"] = joined["arguments"]["joins"]
    to_first = allocate('order_id = "A"', match='targets.area = "EMEA"', set=SET)
    after = applied(pool, joined, same, to_first, same, sources={"heads": targets})
    assert rows(after.filter("_operation_seq = 3"), "order_id", "region", "amount", "status") == [
        ("A", "c1", "100.00", "EMEA")
    ]
