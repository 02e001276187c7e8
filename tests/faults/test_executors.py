"""Executors of a local cluster, or the Java process of Spark, are killed in the middle of a job.

Spark repeats the work of an executor. If it cannot, the run fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import FOREIGN, JANUARY, Books, contents

KILLED = "an executor of a local cluster is killed"
RUN = """
import sys, threading, time
from pathlib import Path
from pyspark.sql import functions as F
from tallybook.cli.main import main
from tallybook.runs import outputs
from tests.faults.test_executors import kill_executors

root, home, count, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
real = outputs.write

def kill_those_at_work(tracker):
    for _ in range(times):
        while not any(tracker.getStageInfo(stage).numActiveTasks for stage in tracker.getActiveStageIds()):
            time.sleep(0.2)
        time.sleep(0.5)
        kill_executors(home, count) if count else java.kill()
        time.sleep(2)

def slow(spark, frame, location, **options):
    global java
    java = spark.sparkContext._gateway.proc
    tracker = spark.sparkContext.statusTracker()
    threading.Thread(target=kill_those_at_work, args=[tracker], daemon=True).start()
    many = spark.range(0, 2 * 10**8, 1, 2).withColumnRenamed("id", "many")
    first = many.where(F.xxhash64("many") == F.xxhash64(F.lit(0).cast("long")))
    return real(spark, frame.crossJoin(first).drop("many"), location, **options)

outputs.write = slow
sys.exit(main(["run", "close", "--period", "2026-01", "--workspace", str(root)]))
"""


def kill_executors(home: Path, count: int) -> None:
    """Kills so many executors of the cluster whose folders are below the home."""
    executors = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_executor = b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
            if is_executor and (process / "cwd").readlink().is_relative_to(home):
                executors.append(int(process.name))
        except OSError:
            continue
    for pid in executors[:count]:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def ledger_only(active: Books) -> Books:
    """A workspace whose project has one output, on Delta."""
    file = active.root / "close.yaml"
    file.write_text(file.read_text().partition("    - seq: 40")[0])
    active.edit("tallybook.yaml", "local[2]", "local-cluster[2,1,1024]")
    active.open().activate("close")
    return active


def run(books: Books, home: Path, *, count: int, times: int) -> subprocess.CompletedProcess[str]:
    """Runs on a cluster of two executors and kills so many of them, so many times, while tasks are running.

    With a count of 0 it kills the Java process.
    """
    command = [sys.executable, "-c", RUN, str(books.root), str(home), str(count), str(times)]
    environment = os.environ | {"SPARK_HOME": str(home)}
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
@pytest.mark.fault(KILLED, "Spark repeats its tasks; completed with the right rows")
@pytest.mark.parametrize("turn", range(2))
def test_one_executor_is_killed(ledger_only: Books, spark: SparkSession, spark_home: Path, turn: int) -> None:
    done = run(ledger_only, spark_home, count=1, times=1)
    assert done.returncode == 0, done.stderr
    assert ledger_only.newest().status == "completed"
    assert ledger_only.ledger() == JANUARY


@pytest.mark.long
@pytest.mark.fault(KILLED, "all of them, again and again: SparkFailed; old files as they were; retry completed")
def test_every_executor_is_killed_again_and_again(ledger_only: Books, spark: SparkSession, spark_home: Path) -> None:
    check_failure(ledger_only, lambda: run(ledger_only, spark_home, count=2, times=10))


@pytest.mark.long
@pytest.mark.fault("the Java process of Spark is killed", "SparkFailed; old files as they were; retry completed")
def test_the_java_process_is_killed(ledger_only: Books, spark: SparkSession, spark_home: Path) -> None:
    ledger_only.edit("tallybook.yaml", "local-cluster[2,1,1024]", "local[2]")
    check_failure(ledger_only, lambda: run(ledger_only, spark_home, count=0, times=1))


def check_failure(books: Books, run: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    books.run()
    before = contents(books.root / "warehouse")
    done = run()
    assert done.returncode == 1, done.stdout
    assert "SparkFailed" in done.stderr and not any(word in done.stderr for word in FOREIGN), done.stderr
    after = contents(books.root / "warehouse")
    assert {name: after.get(name) for name in before} == before
    books.retry()
    assert books.ledger() == JANUARY
