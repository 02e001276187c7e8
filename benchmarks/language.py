"""What do shares and allocations cost beside the same in hand-written PySpark?

Shares: each line's part of the total of its product and region, written with three columns. By hand: a groupBy and a
left join. Allocations: each line is distributed over the 1,000 rows of a table by a driver; `rows` counts the new rows.
By hand: a cross join and two windows, with the same rule for what rounding leaves.
"""

from __future__ import annotations

from pathlib import Path

from _by_hand import read, write
from _data import LINES, SMALL, SMALL_TABLE, lines, made, small_table
from _data import write as write_data
from _kit import ENGINE, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, allocate, dataset, engine_way, output, update, write_workspace
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

KINDS = ("share", "allocation")
BARS = {"share": 1.2, "allocation": 1.5}
KEYS = ("product", "region")


def generate(suite: Suite, rows: int, kind: str) -> Path:
    """Makes as many rows as the output shall have."""
    spark = suite.session
    count = rows if kind == "share" else max(rows // SMALL, 1)

    def make(folder: Path) -> None:
        write_data(lines(spark, count), folder / "lines" / PERIOD)
        write_data(small_table(spark, 0), folder / "targets_0")

    return made(suite.data, f"language-{kind}-{rows}", make)


def by_engine(suite: Suite, data: Path, kind: str) -> Way:
    if kind == "share":
        operations = [
            update(share="amount / SUM(amount) OVER (product, region)"),
            output("result", ("line_id", "amount", "share")),
        ]
    else:
        operations = [
            allocate("amount", "targets_0", "targets.rate", product="targets.code"),
            output("result", ("line_id", "product", "amount"), "_operation_seq > 0"),
        ]
    datasets = [dataset("lines", LINES, monthly=True), dataset("targets_0", SMALL_TABLE)]
    folder = write_workspace(suite.new_folder("workspace"), data, datasets, operations)
    return engine_way(folder, ["result"])


def share_by_spark(spark: SparkSession, data: Path, target: Path) -> None:
    rows = read(spark, data / "lines" / PERIOD, LINES)
    totals = rows.groupBy(*KEYS).agg(F.sum("amount").cast("decimal(38,2)").alias("total"))
    shares = rows.join(totals, list(KEYS), "left").withColumn("share", F.col("amount") / F.col("total"))
    write(shares.select("line_id", "amount", "share"), target)


def allocation_by_spark(spark: SparkSession, data: Path, target: Path) -> None:
    pool = read(spark, data / "lines" / PERIOD, LINES).select("line_id", "amount")
    targets = read(spark, data / "targets_0", SMALL_TABLE).filter("rate > 0").select("code", "rate")
    by_line = Window.partitionBy("line_id")
    pairs = pool.crossJoin(F.broadcast(targets)).selectExpr(
        "line_id",
        "code",
        "amount",
        "CAST(abs(amount) * 100 AS decimal(18,0)) AS units",
        "CAST(rate * 10000 AS decimal(9,0)) AS weight",
    )
    weighed = pairs.withColumn("weights", F.sum("weight").over(by_line))
    parts = weighed.withColumn("rest", F.expr("(units * weight) % weights"))
    floors = parts.withColumn("floor", F.expr("CAST((units * weight - rest) / weights AS decimal(18,0))"))
    ranked = floors.withColumns(
        {
            "left": F.col("units") - F.sum("floor").over(by_line),
            "rank": F.row_number().over(by_line.orderBy(F.desc("rest"), "code")),
        }
    )
    size = "(floor + IF(rank <= left, 1, 0)) * CAST(0.01 AS decimal(3,2))"
    share = f"CAST(IF(amount < 0, -{size}, {size}) AS decimal(18,2)) AS amount"
    write(ranked.selectExpr("line_id", "code AS product", share), target)


BY_SPARK = {"share": share_by_spark, "allocation": allocation_by_spark}


def case(suite: Suite, rows: int, kind: str) -> Case:
    spark, data = suite.session, generate(suite, rows, kind)
    target = suite.folder / f"by-hand-{kind}"
    ways = {
        ENGINE: by_engine(suite, data, kind),
        SPARK: Way(lambda: BY_SPARK[kind](spark, data, target), (target,)),
    }
    return Case({"rows": rows, "kind": kind}, ways, BARS[kind])


def main() -> None:
    given = options(
        __doc__,
        rows=[1_000_000],
        long_rows=[5_000_000, 10_000_000],
        more=lambda parser: parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS),
    )
    with suite("language", __doc__, given) as running:
        for rows in given.rows:
            for kind in given.kinds:
                running.measure(case(running, rows, kind))


if __name__ == "__main__":
    main()
