"""What does an append cost: all rows of a source, some of them, or their totals, of 10 and 100 thousand rows?

The cases are those of the table in the source document of `append`, whose targets (`target_ms`) are for loading and
concatenating in memory with Polars. Here a whole run is measured: 1,000 working rows, an append, and an output of all
rows. `extra_ms` is what the append adds to the same project without it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from _by_hand import polars_system_columns, read, system_columns, write
from _data import CHANNELS, LINES, lines, made
from _data import write as write_data
from _kit import ENGINE, POLARS, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, append, dataset, engine_way, output, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

WORKING_ROWS = 1_000
KINDS = ("none", "simple", "filtered", "aggregated")
TARGETS_MS = {
    ("simple", 10_000): 10,
    ("simple", 100_000): 10,
    ("filtered", 10_000): 15,
    ("filtered", 100_000): 20,
    ("aggregated", 10_000): 30,
    ("aggregated", 100_000): 50,
}
KEYS = ("product", "region")
SEQ = 1


def generate(suite: Suite, rows: int) -> Path:
    def make(folder: Path) -> None:
        write_data(lines(suite.session, WORKING_ROWS), folder / "lines" / PERIOD)
        write_data(lines(suite.session, rows), folder / "budget" / PERIOD)

    return made(suite.data, f"append-{rows}", make)


def by_engine(suite: Suite, data: Path, kind: str) -> Way:
    selector = {"source_selector": f'channel <> "{CHANNELS[0]}"'}
    sums = {"group_by": list(KEYS), "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]}
    operations = {
        "none": [],
        "simple": [append("budget")],
        "filtered": [append("budget", **selector)],
        "aggregated": [append("budget", **selector, aggregation=sums)],
    }
    datasets = [dataset("lines", LINES, monthly=True), dataset("budget", LINES, monthly=True)]
    folder = suite.new_folder("workspace")
    return engine_way(write_workspace(folder, data, datasets, [*operations[kind], output("result")]), ["result"])


def by_spark(spark: SparkSession, data: Path, target: Path, kind: str) -> None:
    written = read(spark, data / "lines" / PERIOD, LINES).withColumns(system_columns("lines"))
    if kind != "none":
        budget = read(spark, data / "budget" / PERIOD, LINES)
        if kind != "simple":
            budget = budget.where(F.col("channel") != CHANNELS[0])
        if kind == "aggregated":
            budget = budget.groupBy(*KEYS).agg(F.sum("amount").cast("decimal(18,2)").alias("amount"))
        added = budget.withColumns(system_columns("budget", SEQ))
        written = written.unionByName(added, allowMissingColumns=True)
    write(written, target)


def by_polars(data: Path, target: Path, kind: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    frames = [pl.scan_parquet(data / "lines" / PERIOD / "*.parquet").with_columns(polars_system_columns("lines"))]
    if kind != "none":
        budget = pl.scan_parquet(data / "budget" / PERIOD / "*.parquet")
        if kind != "simple":
            budget = budget.filter(pl.col("channel") != CHANNELS[0])
        if kind == "aggregated":
            budget = budget.group_by(KEYS).agg(pl.col("amount").sum().cast(pl.Decimal(18, 2)))
        frames.append(budget.with_columns(polars_system_columns("budget", SEQ)))
    pl.concat(frames, how="diagonal").sink_parquet(target / "rows.parquet")


def case(suite: Suite, rows: int, kind: str) -> Case:
    spark, data = suite.session, generate(suite, rows)
    targets = {name: suite.folder / name for name in (SPARK, POLARS)}
    ways = {
        ENGINE: by_engine(suite, data, kind),
        SPARK: Way(lambda: by_spark(spark, data, targets[SPARK], kind), (targets[SPARK],)),
        POLARS: Way(lambda: by_polars(data, targets[POLARS], kind), (targets[POLARS],)),
    }
    return Case({"rows": rows, "append": kind}, ways)


def main() -> None:
    given = options(__doc__, rows=[10_000, 100_000], long_rows=[10_000_000])
    with suite("append", __doc__, given) as running:
        for rows in given.rows:
            none = running.measure(case(running, rows, "none"))
            for kind in KINDS[1:]:
                result = running.measure(case(running, rows, kind))
                for name in (ENGINE, SPARK, POLARS):
                    if f"{name}_ms" in result:
                        result[f"{name}_extra_ms"] = round(result[f"{name}_ms"] - none[f"{name}_ms"], 1)
                if (kind, rows) in TARGETS_MS:
                    result["target_ms"] = TARGETS_MS[kind, rows]


if __name__ == "__main__":
    main()
