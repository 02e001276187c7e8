"""What is taken from Spark's errors, as they come from the JVM and from a Connect server."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import SparkSession

from tallybook.storage.failure import SPARK_ERRORS, lost_process, reason, refused_files

WRITING = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030"
IMITATION = "x\n\tat a.b(C.java)\nCaused by: java.io.IOException: No space left on device\n: java.io.IOException: so"
"""A value that looks like the trace of a full disk."""


def from_connect(message: str, trace: str = "", name: str | None = None) -> Exception:
    return SparkConnectGrpcException(
        message, errorClass=name, messageParameters={}, server_stacktrace=dedent(trace) or None
    )


FULL = """\
    org.apache.spark.SparkException
    \tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala)
    Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
    \tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:405)
    Caused by: java.io.IOException: No space left on device
    \t... 41 more
    """
INPUT_GONE = """\
    org.apache.spark.SparkException
    \tat org.apache.spark.Thing.run(Thing.scala)
    Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading /in
    \tat org.apache.spark.Thing.run(Thing.scala)
    Caused by: java.io.FileNotFoundException: File file:/in does not exist
    """
LOST = """\
    org.apache.spark.SparkException
    \tat org.apache.spark.Thing.run(Thing.scala)
    Caused by: java.lang.OutOfMemoryError: Java heap space
    """
TASK = "Job aborted due to stage failure: Task 1 in stage 2.0 failed 1 times, most recent failure: Lost task 1.0 in "
TASK += "stage 2.0 (TID 4) (10.0.0.1 executor driver): java.io.IOException: Mkdirs failed to create file:/proc/x"
SPILL = TASK.replace("Mkdirs failed to create file:/proc/x", "No space left on device")
"""A task that was sorting or shuffling, not writing an output."""


@pytest.mark.parametrize(
    ("error", "said", "refused"),
    [
        (from_connect(WRITING, FULL, "TASK_WRITE_FAILED"), WRITING, "No space left on device"),
        (from_connect(WRITING, name="TASK_WRITE_FAILED"), WRITING, WRITING),
        (
            from_connect("Job aborted.", INPUT_GONE),
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading /in",
            None,
        ),
        (from_connect("Job aborted.", LOST), "java.lang.OutOfMemoryError: Java heap space", None),
        (
            from_connect(TASK),
            "java.io.IOException: Mkdirs failed to create file:/proc/x",
            "Mkdirs failed to create file:/proc/x",
        ),
        (
            from_connect(SPILL),
            "java.io.IOException: No space left on device",
            "No space left on device, in the folder where Spark keeps its temporary files (spark.local.dir)",
        ),
        (from_connect(f"it failed on {IMITATION}"), "it failed on x", None),
        (Exception(""), "Exception", None),
    ],
    ids=[
        "full disk",
        "full disk, no trace",
        "input gone",
        "no memory",
        "of a task",
        "full scratch",
        "imitation",
        "nothing",
    ],
)
def test_one_line_and_whether_the_files_are_to_blame(error: Exception, said: str, refused: str | None) -> None:
    assert (reason(error), refused_files(error)) == (said, refused)


@pytest.mark.parametrize("value", ["java.io.IOException: so it says", IMITATION, "[FAILED_READ_FILE.X] y", WRITING])
@pytest.mark.parametrize("expression", ["raise_error(v)", "CAST(v AS BIGINT)", "'a' LIKE concat(v, '\\\\b')"])
def test_a_value_is_not_blamed_on_the_files_whatever_its_text(
    spark: SparkSession, tmp_path: Path, value: str, expression: str
) -> None:
    failing = spark.createDataFrame([(value,)], "v string").repartition(1).selectExpr(f"{expression} AS x")
    with pytest.raises(PySparkException) as caught:
        failing.write.parquet(str(tmp_path / "out"))
    assert refused_files(caught.value) is None


def test_a_place_that_cannot_be_written_is_blamed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SPARK_ERRORS) as caught:
        spark.range(3).write.parquet(str(tmp_path / "file" / "below"))
    said = refused_files(caught.value)
    assert said is not None and said.startswith("Parent path is not a directory")


def test_a_file_gone_before_it_is_read_is_not_blamed_on_the_destination(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "in"))
    read = spark.read.schema("id bigint").parquet(str(tmp_path / "in"))
    read.inputFiles()
    for file in (tmp_path / "in").glob("*.parquet"):
        file.write_bytes(b"not parquet")
    with pytest.raises(SPARK_ERRORS) as caught:
        read.write.parquet(str(tmp_path / "out"))
    assert refused_files(caught.value) is None
    assert reason(caught.value).startswith("[FAILED_READ_FILE")


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "0.0 (TID 3) (127.0.0.1 executor 7): ExecutorLostFailure (executor 7 exited caused by one of the running tasks) "
    "Reason: Command exited with code 137"
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (from_connect(LOST), "were lost 4 times, the last time with: Command exited with code 137"),
        (
            from_connect("Job aborted due to stage failure: Master removed our application: FAILED"),
            "the cluster stopped the processes",
        ),
        (ConnectionRefusedError("Connection refused"), "the Java process of Spark ended during the run"),
    ],
)
def test_processes_that_were_lost(error: Exception, said: str) -> None:
    assert said in (lost_process(error) or "")


def test_a_value_does_not_pass_for_a_lost_process() -> None:
    assert lost_process(from_connect(f"the value {LOST}")) is None
