"""What do joins cost: to small tables, to a large one, and to a large one with a frequent key?

Small: 1, 4 or 8 updates, each with a join to another table of 1,000 rows. Large: one join to a table with as many rows
as the lines. Skewed: the same, and 30 percent of the lines have one key. By hand: plain left joins. Spark broadcasts
the small tables by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from _by_hand import read, write
from _data import CUSTOMER_TABLE, LINES, SMALL_TABLE, SMALL_TABLES, customer_table, lines, made, small_table
from _data import write as write_data
from _kit import ENGINE, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, dataset, engine_way, join, output, update, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SKEW_PERCENT = 30
KINDS = ("small", "large", "skewed")
BARS = {"small": 0.9, "large": 1.1, "skewed": 1.1}
KEPT = ("line_id", "customer", "product", "amount")


def generate(suite: Suite, rows: int, kind: str) -> Path:
    spark = suite.session

    def make(folder: Path) -> None:
        skew = SKEW_PERCENT if kind == "skewed" else 0
        write_data(lines(spark, rows, customers=rows, skew=skew), folder / "lines" / PERIOD)
        if kind == "small":
            for number in range(SMALL_TABLES):
                write_data(small_table(spark, number), folder / f"small_{number}")
        else:
            write_data(customer_table(spark, rows), folder / "customers")

    return made(suite.data, f"joins-{kind}-{rows}", make)


def small_by_engine(suite: Suite, data: Path, count: int) -> Way:
    datasets = [dataset("lines", LINES, monthly=True)]
    operations = []
    for number in range(count):
        table = f"small_{number}"
        datasets.append(dataset(table, SMALL_TABLE))
        set_columns = {f"title_{number}": f"{table}.title", f"charge_{number}": f"amount * {table}.rate"}
        operations.append(update(joins=[join(table, f"{table}.code = lines.product")], **set_columns))
    operations.append(output("result", small_columns(count)))
    folder = write_workspace(suite.new_folder("workspace"), data, datasets, operations)
    return engine_way(folder, ["result"])


def small_by_spark(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    working = read(spark, data / "lines" / PERIOD, LINES)
    for number in range(count):
        table = read(spark, data / f"small_{number}", SMALL_TABLE)
        renamed = table.select(F.col("code").alias("product"), F.col("title").alias(f"title_{number}"), "rate")
        joined = working.join(renamed, "product", "left")
        working = joined.withColumn(f"charge_{number}", F.col("amount") * F.col("rate")).drop("rate")
    write(working.select(*small_columns(count)), target)


def small_columns(count: int) -> Sequence[str]:
    return [*KEPT, *(f"{name}_{number}" for number in range(count) for name in ("title", "charge"))]


def large_by_engine(suite: Suite, data: Path) -> Way:
    set_columns = {"tier": "customers.tier", "reduction": "amount * customers.discount"}
    operations = [
        update(joins=[join("customers", "customers.id = lines.customer")], **set_columns),
        output("result", (*KEPT, *set_columns)),
    ]
    datasets = [dataset("lines", LINES, monthly=True), dataset("customers", CUSTOMER_TABLE)]
    return engine_way(write_workspace(suite.new_folder("workspace"), data, datasets, operations), ["result"])


def large_by_spark(spark: SparkSession, data: Path, target: Path) -> None:
    lines = read(spark, data / "lines" / PERIOD, LINES)
    customers = read(spark, data / "customers", CUSTOMER_TABLE).withColumnRenamed("id", "customer")
    joined = lines.join(customers, "customer", "left")
    written = joined.select(*KEPT, "tier", (F.col("amount") * F.col("discount")).alias("reduction"))
    write(written, target)


def case(suite: Suite, rows: int, kind: str, count: int) -> Case:
    spark, data, target = suite.session, generate(suite, rows, kind), suite.folder / "by-hand"
    if kind == "small":
        engine = small_by_engine(suite, data, count)
        hand = Way(lambda: small_by_spark(spark, data, target, count), (target,))
    else:
        engine = large_by_engine(suite, data)
        hand = Way(lambda: large_by_spark(spark, data, target), (target,))
    return Case({"rows": rows, "tables": kind, "joins": count}, {ENGINE: engine, SPARK: hand}, BARS[kind])


def main() -> None:
    given = options(
        __doc__,
        rows=[500_000],
        long_rows=[10_000_000],
        counts=[1, 4, 8],
        more=lambda parser: parser.add_argument("--tables", nargs="+", choices=KINDS, default=KINDS),
    )
    with suite("joins", __doc__, given) as running:
        for rows in given.rows:
            for kind in given.tables:
                for count in given.counts if kind == "small" else [1]:
                    running.measure(case(running, rows, kind, count))


if __name__ == "__main__":
    main()
