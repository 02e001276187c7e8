"""What all benchmarks share: options, the session, taking turns, the table and the JSON file.

All ways of a case run in one process, one after the other, and the order changes every round. A time depends on the
machine and on the day; the ratio of two medians from one process depends on them much less. Before the first timed
round, the rows that all ways have written are compared: a way that is fast and wrong ends the benchmark.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _agree import check_same_rows
from _machine import describe_machine
from pyspark.sql import SparkSession

from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "benchmarks"
ENGINE, SPARK, DUCKDB, POLARS = "engine", "spark", "duckdb", "polars"
CORES = 2
JOB_GROUP = "spark.jobGroup.id"
FIRST_WARMUPS = 5
"""Turns of the first case that do not count, two if they are long; later cases have one."""
SHORT_SECONDS, LONG_SECONDS = 1.0, 3.0
"""A turn below the first is mostly planning and varies more, so a short case has twice the rounds. A case with turns
above the second has at most two."""


@dataclass(frozen=True)
class Way:
    """One way to do the work of a case, and the folders of Parquet files or Delta tables that it writes."""

    run: Callable[[], object]
    outputs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Case:
    """Several ways to get the same rows. `labels` are its first cells in the table."""

    labels: Mapping[str, object]
    ways: Mapping[str, Way]
    bar: float | None = None
    """The largest ratio of the engine to the rival that is good enough."""
    rival: str = SPARK
    """The way that the ratio refers to."""


@dataclass
class Suite:
    """A benchmark while it runs: its options, session and folders, and the results so far."""

    name: str
    question: str
    given: argparse.Namespace
    spark: SparkSession | None
    folder: Path
    """A temporary folder for workspaces and outputs."""
    results: list[dict[str, Any]] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)

    @property
    def session(self) -> SparkSession:
        assert self.spark is not None, "this benchmark has no session of its own"
        return self.spark

    @property
    def data(self) -> Path:
        """The folder where generated data stays for the next time."""
        return Path(self.given.cache)

    def new_folder(self, name: str) -> Path:
        """Returns an empty folder below the temporary one."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def measure(self, case: Case) -> dict[str, Any]:
        """Warms up, compares the rows, takes turns, and adds the result to the table."""
        shown = ", ".join(f"{name} {value}" for name, value in case.labels.items())
        print(f"{self.name}: {shown} …", file=sys.stderr, flush=True)
        ways = {name: way for name, way in case.ways.items() if not self.given.ways or name in self.given.ways}
        jobs: dict[str, dict[str, int]] = {}
        seconds: list[dict[str, float]] = []
        for number in range(self._warmups):
            turn = {}
            for name, way in ways.items():
                with self._counted_jobs(jobs, name):
                    turn[name] = timed(way.run)
            if number == 0:
                check_same_rows({name: way.outputs for name, way in ways.items()})
            elif max(turn.values()) > LONG_SECONDS:
                break
        for number in range(self._rounds(max(turn.values()))):
            seconds.append({name: timed(ways[name].run) for name in turns(list(ways), number)})
        result = summary(case, list(ways), seconds, jobs)
        return self.add(result)

    def _rounds(self, longest: float) -> int:
        """The turns that count, by the seconds of the longest one."""
        rounds: int = self.given.rounds
        if longest < SHORT_SECONDS and rounds > 1:
            return 2 * rounds
        return min(rounds, 2) if longest > LONG_SECONDS else rounds

    @property
    def _warmups(self) -> int:
        """The turns that do not count: the JVM compiles what it runs often, and the engine runs more than a rival."""
        return FIRST_WARMUPS if not self.results and self.given.rounds > 1 else 1

    def add(self, result: dict[str, Any]) -> dict[str, Any]:
        """Adds a row to the table of results."""
        self.results.append(result)
        return result

    @contextlib.contextmanager
    def _counted_jobs(self, jobs: dict[str, dict[str, int]], name: str) -> Iterator[None]:
        """Counts the Spark jobs of a turn that does not count, and their tasks."""
        if self.spark is None or name not in (ENGINE, SPARK):
            yield
            return
        with job_group(self.spark) as group:
            yield
        tracker = self.spark.sparkContext.statusTracker()
        ids = tracker.getJobIdsForGroup(group)
        infos = [info for id in ids if (info := tracker.getJobInfo(id)) is not None]
        stages = [stage for info in infos for id in info.stageIds if (stage := tracker.getStageInfo(id)) is not None]
        jobs[name] = {"jobs": len(ids), "tasks": sum(stage.numCompletedTasks for stage in stages)}


@contextlib.contextmanager
def job_group(spark: SparkSession) -> Iterator[str]:
    """Gives the Spark jobs of this thread a group, and yields its name. A group inside another is the same one."""
    context = spark.sparkContext
    if outer := context.getLocalProperty(JOB_GROUP):
        yield outer
        return
    group = f"bench-{time.perf_counter_ns()}"
    context.setJobGroup(group, group)
    try:
        yield group
    finally:
        context.setLocalProperty(JOB_GROUP, None)  # type: ignore[arg-type]  # None removes it


def timed(work: Callable[[], object]) -> float:
    """Returns the seconds that the work takes."""
    gc.collect()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def turns(names: Sequence[str], number: int) -> Sequence[str]:
    """Returns the order of a round. Each way is first in turn, so none always follows the same other."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def summary(
    case: Case, names: Sequence[str], seconds: Sequence[Mapping[str, float]], jobs: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Returns the medians, the ratio to the rival, and whether it is within the bar."""
    medians = {name: statistics.median(turn[name] for turn in seconds) for name in names}
    result: dict[str, Any] = dict(case.labels)
    result |= {f"{name}_ms": round(median * 1000, 1) for name, median in medians.items()}
    if ENGINE in medians and case.rival in medians:
        ratio = medians[ENGINE] / medians[case.rival]
        result["ratio"] = round(ratio, 3)
        judge(result, "ratio", case.bar)
    for name, counts in jobs.items():
        result |= {f"{name}_{what}": count for what, count in counts.items()}
    return result | {"turns_ms": {name: [round(turn[name] * 1000, 1) for turn in seconds] for name in names}}


def judge(result: dict[str, Any], what: str, bar: float | None) -> None:
    """Adds the bar to a result, and whether the value named `what` is within it."""
    if bar is not None and what in result:
        result |= {"bar": bar, "within": "yes" if result[what] <= bar else "NO"}


def options(
    question: str | None,
    rows: Sequence[int] = (),
    long_rows: Sequence[int] = (),
    counts: Sequence[int] = (),
    rounds: int = 3,
    memory: str = "6g",
    more: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> argparse.Namespace:
    """Reads the command line. Options that a benchmark has no use for are accepted: `make bench` gives all the same."""
    parser = argparse.ArgumentParser(description=question, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", help=f"default: {' '.join(map(str, rows))}")
    parser.add_argument("--counts", type=int, nargs="+", default=list(counts), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=rounds, help="timed rounds; short cases take more")
    parser.add_argument("--long", action="store_true", help=f"more rows as well: {' '.join(map(str, long_rows))}")
    parser.add_argument("--ways", nargs="+", default=[], help="only these, such as: engine spark")
    parser.add_argument("--cache", type=Path, default=RESULTS / "data", help="where generated data stays")
    parser.add_argument("--memory", default=memory, help="heap of the driver")
    parser.add_argument("--json", type=Path, help="where the results go; default: build/benchmarks/NAME.json")
    more(parser)
    given = parser.parse_args()
    given.rows = given.rows or [*rows, *(long_rows if given.long else ())]
    return given


@contextlib.contextmanager
def suite(name: str, question: str | None, given: argparse.Namespace, *, session: bool = True) -> Iterator[Suite]:
    """Starts a session, and at the end prints the table and writes the JSON file, also of a benchmark that fails."""
    os.environ.setdefault("POLARS_MAX_THREADS", str(CORES))
    first_line = (question or name).partition("\n")[0]
    with tempfile.TemporaryDirectory(prefix="tallybook-bench-") as folder:
        settings = SparkSettings(master=f"local[{CORES}]", conf={"spark.driver.memory": given.memory})
        running = Suite(name, first_line, given, get_session(settings) if session else None, Path(folder))
        try:
            yield running
        finally:
            if running.results:
                report(running)


def report(done: Suite) -> None:
    """Prints the table and writes the JSON file."""
    took = round(time.perf_counter() - done.begun, 1)
    document = {
        "benchmark": done.name,
        "question": done.question,
        "long": bool(done.given.long),
        "seconds": took,
        **describe_machine(),
        "results": done.results,
    }
    path = done.given.json or RESULTS / f"{done.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\n{done.name}: {done.question}")
    print("\n".join(table(done.results)))
    print(f"  {took:.0f} s in all; {path}")


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the results as aligned lines, without the single turns."""
    names = list(dict.fromkeys(name for result in results for name in result if name != "turns_ms"))
    lines = [names, *([cell(result.get(name)) for name in names] for result in results)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(names))]
    return ["  " + "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines]


def cell(value: object) -> str:
    """Returns the text of a table cell: times without decimals, ratios with two."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
