from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallybook.engine.interrupt import interruptible

SCRIPT = """\
import sys, time
from pathlib import Path
from pyspark.sql import functions as F
from tallybook.engine.interrupt import interruptible
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings
conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = get_session(SparkSettings(conf=conf, **{sys.argv[1]: "local[2]"}), log_dir=Path(sys.argv[2]))
spark.range(10).count()
endless = spark.range(0, 10**13, 1, 4).select(F.sum(F.sqrt("id")))
try:
    with interruptible(spark):
        print("running", flush=True)
        endless.collect()
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(spark.range(20).count(), "rows counted on free cores", flush=True)
"""


@pytest.mark.parametrize(
    "kind", [pytest.param("master", marks=pytest.mark.long), pytest.param("remote", marks=pytest.mark.connect)]
)
def test_ctrl_c_cancels_the_running_job(kind: str, tmp_path: Path) -> None:
    """Also in a process that a Connect client started, and that has inherited its variables."""
    command = [sys.executable, "-c", SCRIPT, kind, str(tmp_path)]
    inherited = os.environ | {"SPARK_CONNECT_MODE_ENABLED": "1", "SPARK_LOCAL_REMOTE": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=inherited) as process:
        assert process.stdout
        assert process.stdout.readline() == "running\n"
        threading.Timer(3, process.send_signal, [signal.SIGINT]).start()
        try:
            said, complained = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said == "interrupted\n20 rows counted on free cores\n"
    assert complained == ""


def test_ctrl_c_between_two_jobs_stops_before_the_block_ends(spark: SparkSession) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible(spark):
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(spark: SparkSession) -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), interruptible(spark):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
    assert not reached


def test_without_ctrl_c_an_error_stays_what_it_is(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="its own"), interruptible(spark):
        raise ValueError("its own")


def test_outside_the_main_thread_the_block_just_runs(spark: SparkSession) -> None:
    counted: list[int] = []

    def count() -> None:
        with interruptible(spark):
            counted.append(spark.range(3).count())

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    assert counted == [3]
