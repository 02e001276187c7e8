"""Killed at any moment, a write leaves all of the old or all of the new, and its retry finishes without doubling.

Every kill is a real SIGKILL. Where no Spark job is under way a fork of this process dies: it shares the session, which
rests meanwhile. In the middle of a Spark job another process with a session of its own has to die.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tallybook.storage import file_writer, publish, write

A_WRITE = pytest.mark.fault(
    "SIGKILL at a chosen step of a write", "old rows or new rows, whole; the same write completed"
)
OLD, NEW, BOTH = [(1,), (2,)], [(3,), (4,)], [(1,), (2,), (3,), (4,)]


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def before_publishing():
    file_writer.publish = die


def after_publishing():
    real = file_writer.publish
    file_writer.publish = lambda *paths: die(real(*paths))


def while_the_old_is_cleared():
    publish._give_back = die


def while_linking():
    real, seen = publish._link, []
    publish._link = lambda *paths: die() if seen else seen.append(real(*paths))


def while_the_old_stands_aside():
    real = Path.rename
    publish._exchange = lambda *_: False
    Path.rename = lambda path, to: die() if to.name == "out" else real(path, to)


@pytest.fixture
def save(spark, run_id):
    def run(rows, location, mode, run):
        frame = spark.createDataFrame(rows, "id bigint").repartition(2, "id")
        return write(spark, frame, location, mode=mode, run_id=run_id(run), seq=5)

    return run


@pytest.fixture
def killed(save):
    """Write in a fork that dies at a moment."""
    if os.environ.get("TALLYBOOK_TEST_REMOTE"):
        pytest.skip("a Spark Connect client does not survive a fork")

    def run(moment, *arguments):
        child = os.fork()
        if child == 0:
            try:
                moment()
                save(*arguments)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGKILL

    return run


@A_WRITE
@pytest.mark.parametrize(
    ("moment", "mode", "name", "seen"),
    [
        (before_publishing, "overwrite", "out", OLD),
        (after_publishing, "overwrite", "out", NEW),
        (while_the_old_is_cleared, "overwrite", "out", NEW),
        (before_publishing, "overwrite", "out.parquet", OLD),
        (after_publishing, "overwrite", "out.parquet", NEW),
        (while_linking, "append", "out", OLD),
        (before_publishing, "append", "out", OLD),
        (after_publishing, "append", "out", BOTH),
    ],
)
def test_publishing(killed, save, rows, locate, table, tmp_path, moment, mode, name, seen):
    location = locate("parquet", tmp_path / name)
    save(OLD, location, "overwrite", "run-1")
    killed(moment, NEW, location, mode, "run-2")
    assert sorted(rows(location, table(id="integer"))) == seen
    save(NEW, location, mode, "run-2")
    assert sorted(rows(location, table(id="integer"))) == (NEW if mode == "overwrite" else BOTH)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@A_WRITE
def test_a_file_system_that_cannot_exchange(killed, save, rows, refused, locate, table, tmp_path):
    """For a moment there is nothing, never half; whoever writes next brings the old back first."""
    location = locate("parquet", tmp_path / "out")
    save(OLD, location, "overwrite", "run-1")
    killed(while_the_old_stands_aside, NEW, location, "overwrite", "run-2")
    assert refused(location, table(id="integer")).type == "DataNotFound"
    save(NEW, location, "append", "run-3")
    assert sorted(rows(location, table(id="integer"))) == BOTH
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


SLOW_WRITE = """
import sys
from pyspark.sql import functions as F
from tallybook.engine.session import get_session
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.settings import SparkSettings
from tallybook.storage import write

spark = get_session(SparkSettings(master="local[2]", conf={"spark.driver.memory": "1g"}))
source = FileSource(id="files", type=sys.argv[1], options=FileOptions(path_prefix="/"))
slow = spark.range(0, 10**12, 1, 2).select(F.xxhash64("id").alias("id"))
write(spark, slow, Location(source, sys.argv[2]), mode="append", run_id=sys.argv[3], seq=5)
"""


@A_WRITE
@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_spark_at_work(save, rows, locate, table, run_id, tmp_path, format):
    location = locate(format, tmp_path / "out")
    save(OLD, location, "overwrite", "run-1")
    command = [sys.executable, "-c", SLOW_WRITE, format, location.target, run_id("run-2")]
    with subprocess.Popen(command, start_new_session=True) as child:
        try:
            _wait_for_output(tmp_path, run_id("run-2"), child)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    assert sorted(rows(location, table(id="integer"))) == OLD
    save(NEW, location, "append", "run-2")
    assert sorted(rows(location, table(id="integer"))) == BOTH
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _wait_for_output(folder, run, child):
    """Until a task of the child is writing its file."""
    for _ in range(600):
        assert child.poll() is None
        if any(run in str(path) for path in folder.rglob("part-*.parquet")):
            return
        time.sleep(0.1)
    raise AssertionError("the child wrote nothing")
