"""What does a long chain of dependent updates cost, and how long does the driver plan it?

20, 100 or 200 updates, each of which reads what the one before it wrote. By hand: the same chain of `withColumn` with
`when`. `driver_ms` is the time from the start of a run to its first Spark job; its growth from the shortest chain, by
operation, is `planning_ms`.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _by_hand import read, write
from _data import LINES, lines_data
from _kit import ENGINE, SPARK, Case, Suite, Way, job_group, judge, options, suite
from _workspace import PERIOD, dataset, engine_way, output, update, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

COLUMNS = ("line_id", "quantity", "amount")
PLANNING_BAR_MS = 5.0
"""For each operation of a chain of 200."""
BARRED = 200
POLL_SECONDS = 0.005


def by_engine(suite: Suite, data: Path, count: int) -> Way:
    updates = [
        update(f'cost_centre <> "CC-{number % 50}"', quantity=f"quantity + LEN(channel) + {number}")
        for number in range(count)
    ]
    folder = suite.new_folder("workspace")
    datasets = [dataset("lines", LINES, monthly=True)]
    return engine_way(write_workspace(folder, data, datasets, [*updates, output("result", COLUMNS)]), ["result"])


def by_spark(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    working = read(spark, data / "lines" / PERIOD, LINES)
    for number in range(count):
        value = F.col("quantity") + F.length("channel") + number
        chosen = F.col("cost_centre") != f"CC-{number % 50}"
        working = working.withColumn("quantity", F.when(chosen, value).otherwise(F.col("quantity")))
    write(working.select(*COLUMNS), target)


class Watched:
    """Work whose turns also note the milliseconds before their first Spark job."""

    def __init__(self, spark: SparkSession, work: Callable[[], object]) -> None:
        self.spark = spark
        self.work = work
        self.driver_ms: list[float] = []

    def __call__(self) -> None:
        done = threading.Event()
        with job_group(self.spark) as group, ThreadPoolExecutor(1) as pool:
            begun = time.perf_counter()
            first_job = pool.submit(self.first_job, group, done)
            try:
                self.work()
            finally:
                done.set()
        self.driver_ms.append((first_job.result() - begun) * 1000)

    def first_job(self, group: str, done: threading.Event) -> float:
        """Returns the time at which the group has its first job, or at which the work is done."""
        tracker = self.spark.sparkContext.statusTracker()
        while not done.is_set() and not tracker.getJobIdsForGroup(group):
            time.sleep(POLL_SECONDS)
        return time.perf_counter()


def case(suite: Suite, rows: int, count: int) -> Case:
    spark, data, target = suite.session, lines_data(suite.session, suite.data, rows), suite.folder / "by-hand"
    engine = by_engine(suite, data, count)
    ways = {
        ENGINE: Way(Watched(spark, engine.run), engine.outputs),
        SPARK: Way(Watched(spark, lambda: by_spark(spark, data, target, count)), (target,)),
    }
    return Case({"rows": rows, "updates": count}, ways)


def add_planning(result: dict[str, Any], measured: Case, count: int, shortest: dict[str, tuple[int, float]]) -> None:
    """Adds the time on the driver, and by how much it grows with each operation from the shortest chain."""
    for name, way in measured.ways.items():
        if f"{name}_ms" not in result:
            continue
        assert isinstance(way.run, Watched)
        timed_turns = way.run.driver_ms[-len(result["turns_ms"][name]) :]
        driver = statistics.median(timed_turns)
        result[f"{name}_driver_ms"] = round(driver, 1)
        fewest, least = shortest.setdefault(name, (count, driver))
        if count > fewest:
            result[f"{name}_planning_ms"] = round((driver - least) / (count - fewest), 2)
    judge(result, "engine_planning_ms", PLANNING_BAR_MS if count == BARRED else None)


def main() -> None:
    given = options(__doc__, rows=[200_000], long_rows=[2_000_000], counts=[20, 100, 200])
    with suite("operations", __doc__, given) as running:
        for rows in given.rows:
            shortest: dict[str, tuple[int, float]] = {}
            for count in given.counts:
                measured = case(running, rows, count)
                add_planning(running.measure(measured), measured, count, shortest)


if __name__ == "__main__":
    main()
