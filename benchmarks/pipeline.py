"""How much slower is the engine than the same pipeline written by hand in PySpark?

The five operations of the annotated example, Parquet in, Parquet and Delta out, in one process, turn about. The ratio
of medians is the answer: at most 1.10 at 10 million rows, 1.25 at 100 thousand.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from _orders import PERIOD, generate, workspace
from _timing import alternate, median, report
from deltalake import convert_to_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings
from tallybook.workspace import Workspace

BARS = {100_000: 1.25}
BAR = 1.10
SHORT = 1_000_000
MORE_ROUNDS = 5
"""Below so many rows a round takes a second, most of it planning, and one round says little: five times as many."""


def by_hand(spark: SparkSession, data: Path, target: Path, format: str) -> None:
    """What a PySpark developer would write for the same result, ids and audit columns included."""
    now = F.current_timestamp()
    orders = spark.read.parquet(str(data / "orders")).where(F.col("_period") == PERIOD)
    customers = spark.read.parquet(str(data / "customers"))
    id = F.lpad(F.lower(F.hex(F.monotonically_increasing_id())), 12, "0")
    active = F.col("status") == "active"
    detail = (
        orders.withColumns(
            {
                "_row_id": F.concat(F.lit("019c1c38-a400-7000-8000-"), id),
                "_source_dataset_id": F.lit("sales-orders"),
                "_source_table": F.lit("orders"),
                "_operation_seq": F.lit(0).cast("bigint"),
                "_created_at": now,
                "_updated_at": now,
                "_deleted": F.lit(False),
                "_labels": F.when(F.col("region") == "EMEA", "{region:EMEA}").otherwise(""),
            }
        )
        .join(customers.withColumnRenamed("id", "customer_id"), "customer_id", "left")
        .withColumns(
            {
                "customer_tier": F.when(active, F.col("tier")),
                "discounted_price": F.when(
                    active,
                    F.when(F.col("tier") == "gold", F.col("amount") * F.lit("0.9").cast("decimal(1,1)"))
                    .otherwise(F.col("amount"))
                    .cast("decimal(20,3)"),
                ),
            }
        )
        .drop("tier")
    )
    totals = detail.groupBy("_period", "region").agg(
        F.sum("amount").alias("total_sales"), F.count("order_id").alias("order_count")
    )
    summary = totals.withColumns(
        {
            "_row_id": F.expr("uuid()"),
            "_source_dataset_id": F.lit("sales-orders"),
            "_source_table": F.lit("orders"),
            "_operation_seq": F.lit(3).cast("bigint"),
            "_created_at": now,
            "_updated_at": now,
            "_deleted": F.lit(False),
            "_labels": F.lit(""),
        }
    )
    together = detail.unionByName(summary, allowMissingColumns=True)
    marked = together.withColumn("_deleted", F.col("_deleted") | F.coalesce(F.col("amount") == 0, F.lit(False)))
    kept = marked.where(~F.col("_deleted") & (F.col("status") == "active"))
    kept.write.mode("overwrite").parquet(str(target))
    if format == "delta":
        shutil.rmtree(target / "_delta_log", ignore_errors=True)
        convert_to_deltalake(str(target))


def measure(spark: SparkSession, cache: Path, rows: int, format: str, rounds: int) -> dict[str, object]:
    data = generate(spark, cache, rows)
    with tempfile.TemporaryDirectory() as folder:
        opened = Workspace.open(workspace(Path(folder) / "ws", data, format))
        opened.activate("order-close")
        ways = {
            "hand": lambda: by_hand(spark, data, Path(folder) / "by-hand", format),
            "engine": lambda: opened.run("order-close", PERIOD),
        }
        seconds = alternate(ways, rounds * MORE_ROUNDS if rows < SHORT else rounds)
    engine, hand = median(seconds["engine"]), median(seconds["hand"])
    bar = BARS.get(rows, BAR)
    ratio = engine / hand
    return {
        "rows": rows,
        "out": format,
        "engine_s": engine,
        "hand_s": hand,
        "ratio": ratio,
        "bar": bar,
        "within": "yes" if ratio <= bar else "NO",
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="+", default=[100_000, 10_000_000])
    arguments.add_argument("--formats", nargs="+", default=["parquet", "delta"])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tallybook-benchmarks")
    arguments.add_argument("--memory", default="6g")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    spark = get_session(SparkSettings(master="local[2]", conf={"spark.driver.memory": given.memory}))
    results = [measure(spark, given.cache, rows, f, given.rounds) for rows in given.rows for f in given.formats]
    report("pipeline: the engine beside the same pipeline by hand", results, given.json)


if __name__ == "__main__":
    main()
