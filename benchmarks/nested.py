"""What does each further aggregate over all rows before it cost?

The project has 1, 4 or 8 aggregates without a selector, so each reads the summaries of all earlier ones, and one output
of the summaries. By hand: a groupBy for each over the union of what is there, with a local checkpoint of each summary.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from _by_hand import read, write
from _data import LINES, lines_data
from _kit import ENGINE, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, aggregate, dataset, engine_way, output, write_workspace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

KEYS = ("region", "channel")
WRITTEN = (*KEYS, "total", "line_count")
BARS = {4: 1.2, 8: 1.2}


def by_engine(suite: Suite, data: Path, count: int) -> Way:
    summaries = [aggregate(KEYS, total="SUM(tax)", line_count="COUNT(*)") for _ in range(count)]
    folder = suite.new_folder("workspace")
    operations = [*summaries, output("result", WRITTEN, "_operation_seq > 0")]
    write_workspace(folder, data, [dataset("lines", LINES, monthly=True)], operations)
    return engine_way(folder, ["result"])


def by_spark(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    lines = read(spark, data / "lines" / PERIOD, LINES).select(*KEYS, "tax")
    nothing = F.lit(None).cast("decimal(18,2)").alias("tax")
    summaries: list[DataFrame] = []
    for _ in range(count):
        rows = reduce(DataFrame.union, (summary.select(*KEYS, nothing) for summary in summaries), lines)
        summary = rows.groupBy(*KEYS).agg(F.sum("tax").alias("total"), F.count("*").alias("line_count"))
        summaries.append(summary.localCheckpoint(eager=False) if count > 1 else summary)
    write(reduce(DataFrame.union, summaries), target)


def case(suite: Suite, rows: int, count: int) -> Case:
    spark, data = suite.session, lines_data(suite.session, suite.data, rows)
    target = suite.folder / "by-hand"
    ways = {
        ENGINE: by_engine(suite, data, count),
        SPARK: Way(lambda: by_spark(spark, data, target, count), (target,)),
    }
    return Case({"rows": rows, "aggregates": count}, ways, BARS.get(count))


def main() -> None:
    given = options(__doc__, rows=[500_000], long_rows=[10_000_000], counts=[1, 4, 8])
    with suite("nested", __doc__, given) as running:
        for rows in given.rows:
            for count in given.counts:
                running.measure(case(running, rows, count))


if __name__ == "__main__":
    main()
