"""What is taken from Spark's words, as they come from the JVM and from a Connect server."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tallybook.storage.failure import reason, refused_files

FULL = dedent("""\
    An error occurred while calling o83.parquet.
    : org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030
    \tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala)
    Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
    \tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:405)
    Caused by: java.io.IOException: No space left on device
    \t... 41 more
    """)
FROM_CONNECT = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030"
INPUT_GONE = dedent("""\
    An error occurred while calling o123.parquet.
    : org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///in
    Caused by: java.io.FileNotFoundException: File file:/in does not exist
    """)
LOST = dedent("""\
    An error occurred while calling o1.save.
    : org.apache.spark.SparkException: Job aborted.
    \tat org.apache.spark.Thing.run(Thing.scala)
    Caused by: java.lang.OutOfMemoryError: Java heap space
    \t... 1 more
    """)


@pytest.mark.parametrize(
    ("text", "said", "refused"),
    [
        (
            FULL,
            "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030",
            "No space left on device",
        ),
        (FROM_CONNECT, FROM_CONNECT, FROM_CONNECT),
        (INPUT_GONE, "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///in", None),
        (LOST, "java.lang.OutOfMemoryError: Java heap space", None),
        ("", "Exception", None),
    ],
    ids=["full disk", "full disk, by Connect", "input gone", "no memory", "nothing"],
)
def test_one_line_and_whether_the_files_are_to_blame(text: str, said: str, refused: str | None) -> None:
    assert (reason(Exception(text)), refused_files(Exception(text))) == (said, refused)


def test_a_value_is_not_blamed_on_the_files_whatever_its_text(spark: SparkSession) -> None:
    failing = spark.range(1).selectExpr("raise_error('java.io.IOException: so it says') AS x")
    with pytest.raises(PySparkException) as caught:
        failing.collect()
    assert "java.io.IOException: so it says" in str(caught.value)
    assert refused_files(caught.value) is None
