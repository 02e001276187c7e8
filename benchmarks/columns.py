"""What does the width of a table cost: 20, 200 or 1,000 columns?

`--rows` is for 20 columns. Wider tables have fewer rows, so that the number of cells is the same. Three updates set a
tenth of the columns each, an aggregate sums ten columns, and an output writes all rows with all columns. By hand: the
same with three `withColumns`, one groupBy and a union.
"""

from __future__ import annotations

from pathlib import Path

from _by_hand import read, system_columns, write
from _data import FILES, REGIONS, cents, code, made, mixed, one_of
from _data import write as write_data
from _kit import ENGINE, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, aggregate, dataset, engine_way, output, update, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

NARROW = 20
UPDATES = 3
SUMMED = 10
KINDS = ("decimal(18,2)", "string", "integer", "decimal(18,2)")


def columns_of(count: int) -> dict[str, str]:
    """Returns a key, a group and columns of mixed types."""
    return {"id": "string", "region": "string"} | {
        f"c{number}": KINDS[number % len(KINDS)] for number in range(count - 2)
    }


def amounts(count: int) -> list[str]:
    return [name for name, type in columns_of(count).items() if type == "decimal(18,2)"]


def changed(count: int, step: int) -> list[str]:
    """Returns the columns that an update sets: a tenth of all, others in each update where there are enough."""
    names = amounts(count)
    return [names[(step + number * UPDATES) % len(names)] for number in range(max(1, count // 10))]


def generate(suite: Suite, rows: int, count: int) -> Path:
    def make(folder: Path) -> None:
        values = {"decimal(18,2)": lambda name: cents(name, 10_000_000), "integer": lambda name: mixed(name) % 1_000}
        values["string"] = lambda name: code("T", mixed(name) % 5_000)
        cells = [values[type](name).alias(name) for name, type in columns_of(count).items() if name.startswith("c")]
        key, region = code("K", F.col("id")).alias("id"), one_of("region", REGIONS).alias("region")
        frame = suite.session.range(0, rows, numPartitions=FILES).select(key, region, *cells)
        write_data(frame, folder / "wide" / PERIOD)

    return made(suite.data, f"columns-{count}-{rows}", make)


def by_engine(suite: Suite, data: Path, count: int) -> Way:
    updates = [
        update(f'region <> "{REGIONS[step]}"', **{name: f"{name} + {step}.25" for name in set(changed(count, step))})
        for step in range(UPDATES)
    ]
    sums = {name: f"SUM({name})" for name in amounts(count)[:SUMMED]}
    folder = suite.new_folder("workspace")
    operations = [*updates, aggregate(["region"], **sums), output("result")]
    write_workspace(folder, data, [dataset("wide", columns_of(count), monthly=True)], operations)
    return engine_way(folder, ["result"])


def by_spark(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    names = amounts(count)
    working = read(spark, data / "wide" / PERIOD, columns_of(count))
    for step in range(UPDATES):
        chosen = F.col("region") != REGIONS[step]
        more = F.lit(f"{step}.25").cast("decimal(3,2)")
        new = {name: (F.col(name) + more).cast("decimal(18,2)") for name in set(changed(count, step))}
        values = {name: F.when(chosen, value).otherwise(F.col(name)) for name, value in new.items()}
        working = working.withColumns(values)
    sums = [F.sum(name).cast("decimal(18,2)").alias(name) for name in names[:SUMMED]]
    summary = working.groupBy("region").agg(*sums).withColumns(system_columns("wide", UPDATES + 1, period=None))
    detail = working.withColumns(system_columns("wide"))
    write(detail.unionByName(summary, allowMissingColumns=True), target)


def case(suite: Suite, rows: int, count: int) -> Case:
    rows = max(1, rows * NARROW // count)
    spark, data, target = suite.session, generate(suite, rows, count), suite.folder / "by-hand"
    ways = {
        ENGINE: by_engine(suite, data, count),
        SPARK: Way(lambda: by_spark(spark, data, target, count), (target,)),
    }
    return Case({"rows": rows, "columns": count}, ways)


def main() -> None:
    given = options(__doc__, rows=[100_000], long_rows=[1_000_000], counts=[20, 200, 1_000])
    with suite("columns", __doc__, given) as running:
        for rows in given.rows:
            for count in given.counts:
                running.measure(case(running, rows, count))


if __name__ == "__main__":
    main()
