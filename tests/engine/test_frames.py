"""Operations over a frame the caller has: documented for notebooks."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.kit.operations import aggregate, applied, orders, rows, update

from tallybook.engine.frames import apply_operations
from tallybook.errors import UsageError, ValidationError


def test_a_malformed_operation_is_named(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"operation \[0\]\.update\.seq: seq must be a whole number"):
        apply_operations(
            orders(spark),
            [{"seq": 0, "name": "x", "type": "update", "arguments": {"assignments": []}}],
            period="2026-01",
        )


def test_problems_are_those_of_the_checker(spark: SparkSession) -> None:
    with pytest.raises(ValidationError) as caught:
        applied(orders(spark), update(x="amuont"))
    assert (caught.value.problem.type, caught.value.problem.seq) == ("ColumnNotFound", 1)


def test_outputs_are_left_to_the_caller(spark: SparkSession) -> None:
    output = {"type": "output", "arguments": {"destination": {"location": "x"}}}
    with pytest.raises(UsageError, match="cannot have an output"):
        applied(orders(spark), output)


def test_a_source_cannot_take_the_name_of_the_frame(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="'orders' names the frame itself"):
        applied(orders(spark), update(x="1"), sources={"orders": orders(spark)})


def test_floats_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.5,)], "rate double")
    with pytest.raises(UsageError, match="column 'rate' is double"):
        applied(frame, update(x="1"))


def test_several_aggregates(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "APAC", "on", 20, 2))
    sums = [aggregate(["region"], **{f"n{i}": "COUNT(*)"}) for i in range(4)]
    assert applied(frame, *sums).count() == 2 + 2 * 4
    assert rows(applied(frame, *sums).where("_operation_seq = 4"), "region", "n3") == [("APAC", 4), ("EMEA", 4)]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id string, _DELETED boolean", "'_DELETED' of frame 'orders' differs from the system column '_deleted'"),
        ("id string, _Period string", "'_Period' of frame 'orders' differs from the system column '_period'"),
        ("Amount string, amount string", "frame 'orders' has the columns 'Amount' and 'amount'"),
        ("`s` string, `ſ` string", "frame 'orders' has the columns 's' and 'ſ'"),
        ("`tallybook:rows` string", "'tallybook:rows' of frame 'orders' has a name that only Tallybook uses"),
        ("id string, id string", "frame 'orders' has the column 'id' twice"),
    ],
)
def test_columns_that_spark_cannot_tell_apart(columns: str, said: str, spark: SparkSession) -> None:
    frame = spark.createDataFrame([], columns)
    with pytest.raises(UsageError, match=said):
        applied(frame, update(x="1"))
    with pytest.raises(UsageError, match=said.replace("'orders'", "'other'")):
        applied(orders(spark), update(x="1"), sources={"other": frame})


def test_names_with_backquotes_and_dots(spark: SparkSession) -> None:
    """A column of the frame is never taken for one of a joined table, whatever it is called."""
    frame = spark.createDataFrame([("a", "own")], "`a``b` string, `t.tier` string")
    tiers = spark.createDataFrame([("a", "gold")], "id string, tier string")
    aliases = [("t", "t"), ("t`", "t``"), ("a.b", "a.b")]
    joins = [
        {"alias": alias, "dataset_id": "tiers", "on": f"orders.`a``b` = `{quoted}`.id"} for alias, quoted in aliases
    ]
    assignments = [
        {"column": f"tier{index}", "expression": f"`{quoted}`.tier"} for index, (_, quoted) in enumerate(aliases)
    ]
    done = applied(
        frame,
        {"type": "update", "arguments": {"joins": joins, "assignments": assignments}},
        update(kept="`t.tier`"),
        sources={"tiers": tiers},
    )
    assert rows(done, "tier0", "tier1", "tier2", "kept") == [("gold", "gold", "gold", "own")]


def test_frames_that_are_no_datasets(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="'x`y' cannot be the name of a frame"):
        applied(orders(spark), update(x="1"), table="x`y")
    with pytest.raises(UsageError, match="frame 'orders' has no columns except system columns"):
        applied(orders(spark).select("_period"), update(x="1"))
