"""How does the cost of a chain of dependent updates grow, beside the same chain written by hand?

1 million rows; every update reads what the one before it wrote. The engine may never be slower than the hand-written
chain, and 200 updates may cost at most 15 times what 20 do.
"""

from __future__ import annotations

import argparse

from _timing import alternate, median, report
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallybook.engine.frames import apply_operations
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings

GROWTH_BAR = 15.0


def rows(spark: SparkSession, count: int) -> DataFrame:
    number = F.col("id")
    return spark.range(0, count, numPartitions=4).select(
        number.cast("string").alias("key"),
        (number % 10).alias("kind"),
        (number % 100_000 / 100).cast("decimal(18,2)").alias("amount"),
        number.alias("quantity"),
    )


def by_hand(frame: DataFrame, updates: int) -> DataFrame:
    """The chain as a PySpark developer writes it, with the audit column the engine keeps too."""
    now = F.current_timestamp()
    id = F.lpad(F.lower(F.hex(F.monotonically_increasing_id())), 12, "0")
    working = frame.withColumns(
        {
            "_row_id": F.concat(F.lit("019c1c38-a400-7000-8000-"), id),
            "_source_dataset_id": F.lit("rows"),
            "_source_table": F.lit("rows"),
            "_operation_seq": F.lit(0).cast("bigint"),
            "_created_at": now,
            "_updated_at": now,
            "_deleted": F.lit(False),
            "_labels": F.lit(""),
            "_period": F.lit("2026-01"),
        }
    )
    for number in range(updates):
        chosen = F.col("kind") != number % 10
        value = F.col("quantity") + F.col("kind") + number
        working = working.withColumns(
            {
                "quantity": F.when(chosen, value).otherwise(F.col("quantity")),
                "_updated_at": F.when(chosen, now).otherwise(F.col("_updated_at")),
            }
        )
    return working


def by_engine(frame: DataFrame, updates: int) -> DataFrame:
    operations = [
        {
            "seq": number + 1,
            "name": f"update {number}",
            "type": "update",
            "selector": f"kind <> {number % 10}",
            "arguments": {"assignments": [{"column": "quantity", "expression": f"quantity + kind + {number}"}]},
        }
        for number in range(updates)
    ]
    return apply_operations(frame, operations, period="2026-01")


def evaluate(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--updates", type=int, nargs="+", default=[20, 100, 200])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    spark = get_session(SparkSettings(master="local[2]", conf={"spark.driver.memory": "4g"}))
    frame = rows(spark, given.rows)
    results = []
    for updates in given.updates:
        ways = {
            "hand": lambda updates=updates: evaluate(by_hand(frame, updates)),
            "engine": lambda updates=updates: evaluate(by_engine(frame, updates)),
        }
        seconds = alternate(ways, given.rounds)
        engine, hand = median(seconds["engine"]), median(seconds["hand"])
        results.append({"updates": updates, "engine_s": engine, "hand_s": hand, "ratio": engine / hand})
    for result in results:
        result["growth"] = result["engine_s"] / results[0]["engine_s"]
        result["within"] = "yes" if result["ratio"] <= 1.0 and result["growth"] <= GROWTH_BAR else "NO"
    report("operations: chains of dependent updates", results, given.json)


if __name__ == "__main__":
    main()
