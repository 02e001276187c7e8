"""Signals in the middle of a Spark job, in a process of the command line with a Spark of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import JANUARY, Books

_ENDLESS = """
import sys
from tallybook.cli.main import main
from tallybook.runs import outputs

real = outputs.write

def endless(spark, frame, location, **options):
    print("writing", flush=True)
    many = spark.range(10**12).withColumnRenamed("id", "many")
    return real(spark, frame.crossJoin(many).drop("many"), location, **options)

outputs.write = endless
sys.exit(main(["run", "close", "--period", "2026-01", "--workspace", sys.argv[1]]))
"""

A_JOB = pytest.mark.fault("SIGKILL of the command in the middle of a Spark job", "old rows, whole; retry completed")


@pytest.mark.long
@pytest.mark.parametrize(
    ("sent", "code", "status"),
    [
        (signal.SIGINT, 130, "cancelled"),
        (signal.SIGTERM, 143, "cancelled"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, "failed", marks=A_JOB),
    ],
)
def test_stopped_in_the_middle_of_a_job(active: Books, spark: SparkSession, sent: int, code: int, status: str) -> None:
    before = active.run().run
    command = [sys.executable, "-c", _ENDLESS, str(active.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "writing\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.send_signal(sent)
        assert process.wait(60) == code
        assert ("cancelled; " in process.stderr.read()) == (sent != signal.SIGKILL)
    assert active.ledger() == JANUARY, "the old output is intact"
    with active.store() as store:
        run, first = store.runs()
    assert (first.id, run.status) == (before.id, status)
    done = active.open().retry(run.id)
    assert (done.run.status, done.run.attempt, done.outputs[0].rows_written) == ("completed", 2, 2)
    assert active.ledger() == JANUARY
