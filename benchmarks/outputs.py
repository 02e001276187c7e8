"""What does each further output between updates cost?

The project is 1, 4 or 8 times an update of one column and an output of three columns. By hand: the same chain, written
after each step, with nothing kept between the writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from _by_hand import read, write
from _data import LINES, REGIONS, lines_data
from _kit import ENGINE, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, dataset, engine_way, output, update, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

COLUMNS = ("line_id", "region", "net")
BARS = {4: 1.2, 8: 1.2}


def by_engine(suite: Suite, data: Path, count: int) -> Way:
    operations = []
    for number in range(count):
        step = update(net="amount - tax") if number == 0 else update(f'region = "{region(number)}"', net="net + tax")
        operations += [step, output(f"result_{number}", COLUMNS)]
    folder = suite.new_folder("workspace")
    write_workspace(folder, data, [dataset("lines", LINES, monthly=True)], operations)
    return engine_way(folder, [f"result_{number}" for number in range(count)])


def by_spark(spark: SparkSession, data: Path, targets: Sequence[Path]) -> None:
    lines = read(spark, data / "lines" / PERIOD, LINES)
    working = lines.withColumn("net", F.col("amount") - F.col("tax"))
    for number, target in enumerate(targets):
        if number > 0:
            more = (F.col("net") + F.col("tax")).cast("decimal(19,2)")
            working = working.withColumn("net", F.when(F.col("region") == region(number), more).otherwise(F.col("net")))
        write(working.select(*COLUMNS), target)


def region(number: int) -> str:
    return REGIONS[number % len(REGIONS)]


def case(suite: Suite, rows: int, count: int) -> Case:
    spark, data = suite.session, lines_data(suite.session, suite.data, rows)
    targets = tuple(suite.folder / f"by-hand-{number}" for number in range(count))
    ways = {
        ENGINE: by_engine(suite, data, count),
        SPARK: Way(lambda: by_spark(spark, data, targets), targets),
    }
    return Case({"rows": rows, "outputs": count}, ways, BARS.get(count))


def main() -> None:
    given = options(__doc__, rows=[500_000], long_rows=[10_000_000], counts=[1, 4, 8])
    with suite("outputs", __doc__, given) as running:
        for rows in given.rows:
            for count in given.counts:
                running.measure(case(running, rows, count))


if __name__ == "__main__":
    main()
