"""What do joins cost: to small tables, to a large one, to a large one with a frequent key, and for several outputs?

Small: 1, 4 or 8 updates, each with a join to another table of 1,000 rows. Large: one join to a table with as many rows
as the lines, for 1, 2 or 4 outputs of all rows. Skewed: one output, and 30 percent of the lines have one key. By hand:
plain left joins, one for each output. Spark broadcasts the small tables by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
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
JOINED = ("tier", "reduction")
OUTPUTS = {"small": (1,), "large": (1, 2, 4), "skewed": (1,)}
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


def large_by_engine(suite: Suite, data: Path, tables: Sequence[str]) -> Way:
    set_columns = {"tier": "customers.tier", "reduction": "amount * customers.discount"}
    operations = [update(joins=[join("customers", "customers.id = lines.customer")], **set_columns)]
    operations += [
        output(table, (*columns, *JOINED)) for table, columns in zip(tables, written_columns(), strict=False)
    ]
    datasets = [dataset("lines", LINES, monthly=True), dataset("customers", CUSTOMER_TABLE)]
    return engine_way(write_workspace(suite.new_folder("workspace"), data, datasets, operations), tables)


def large_by_spark(spark: SparkSession, data: Path, targets: Sequence[Path]) -> None:
    lines = read(spark, data / "lines" / PERIOD, LINES)
    customers = read(spark, data / "customers", CUSTOMER_TABLE).withColumnRenamed("id", "customer")
    joined = lines.join(customers, "customer", "left")
    reduced = joined.withColumn("reduction", F.col("amount") * F.col("discount"))
    for target, columns in zip(targets, written_columns(), strict=False):
        write(reduced.select(*columns, *JOINED), target)


def written_columns() -> Sequence[Sequence[str]]:
    """Returns the columns that each output writes beside those of the join."""
    return [KEPT, *((*KEPT[:2], column) for column in ("region", "channel", "currency"))]


def case(suite: Suite, rows: int, kind: str, joins: int, outputs: int) -> Case:
    spark, data = suite.session, generate(suite, rows, kind)
    tables = [f"result_{number}" for number in range(outputs)]
    targets = tuple(suite.folder / "by-hand" / table for table in tables)
    if kind == "small":
        engine = small_by_engine(suite, data, joins)
        hand = Way(lambda: small_by_spark(spark, data, targets[0], joins), targets)
    else:
        engine = large_by_engine(suite, data, tables)
        hand = Way(lambda: large_by_spark(spark, data, targets), targets)
    labels = {"rows": rows, "tables": kind, "joins": joins, "outputs": outputs}
    return Case(labels, {ENGINE: engine, SPARK: hand}, BARS[kind])


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
                for joins, outputs in product(given.counts if kind == "small" else [1], OUTPUTS[kind]):
                    running.measure(case(running, rows, kind, joins, outputs))


if __name__ == "__main__":
    main()
