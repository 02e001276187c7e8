"""Lets Spark write the rows of an output into a folder that nobody reads yet, and counts them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.rows.raising import parse_raised
from tallybook.storage.credentials import reader, spark_options
from tallybook.storage.failure import SPARK_ERRORS, refused_files
from tallybook.storage.files import escape_pattern, list_files
from tallybook.storage.publish import remove

if TYPE_CHECKING:
    from tallybook.storage.formats.plain_files import PlainFiles


@dataclass(frozen=True)
class Written:
    """What an output has written. `version` is the version of a table that has these rows."""

    rows: int
    columns: tuple[str, ...]
    version: int | None = None


@dataclass(frozen=True)
class StagedFile:
    """A written file that has rows."""

    name: str
    size: int
    rows: int


def stage(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, path: str, *, single: bool = False
) -> tuple[StagedFile, ...]:
    """Writes the rows as files of a format into a new folder, or as a single file in it.

    Rows are counted in the files, because a counter in the job would count a retried task twice. For Parquet and ORC
    that reads footers, for CSV and JSON the text just written; the rows are not computed again.
    """
    ready = format.prepared(spark, frame, location)
    whole = {"maxRecordsPerFile": "0"} if single else {}
    ready = ready.repartition(1) if single else ready
    options = {**spark_options(location), **format.write_options(location), **whole}
    try:
        ready.write.format(format.type).options(**options).save(path)
        return format.staged_files(spark, frame, location, path)
    except SPARK_ERRORS as error:
        raised = parse_raised(error) or {}
        if raised.get("type") == "WriteFailed":
            raise fail(
                "WriteFailed",
                f"{location} could not be written: column '{raised.get('column')}' has the value "
                f"{raised.get('value')}, which cannot be stored exactly in {format.inexact}",
                hint=format.inexact_hint,
            ) from error
        refused = refused_files(error)
        if refused is None:
            raise
        raise fail("WriteFailed", f"{location} could not be written: {refused}") from error


def count_staged_files(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, path: str
) -> tuple[StagedFile, ...]:
    """Returns the files of a staged folder that have rows, with the rows counted by Spark."""
    columns = T.StructType([T.StructField(name, T.StringType()) for name in frame.columns])
    written = reader(spark, location).format(format.type).schema(columns).options(**format.read_options(location))
    rows = written.load(escape_pattern(path)).groupBy("_metadata.file_name", "_metadata.file_size").count().collect()
    return tuple(sorted((StagedFile(row[0], row[1], row[2]) for row in rows), key=lambda file: file.name))


def clear(spark: SparkSession, location: Location, path: str) -> None:
    """Removes a folder that earlier attempts may have left.

    To overwrite it with no rows is the only way that Spark can delete files on every file system; an empty file
    remains.
    """
    if not urlsplit(path).scheme:
        remove(Path(path))
    elif list_files(reader(spark, location), f"{escape_pattern(path)}/*"):
        nothing = spark.createDataFrame([], "nothing int")
        nothing.write.options(**spark_options(location)).mode("overwrite").parquet(path)


def columns_text(schema: T.StructType) -> str:
    """Returns the columns as text for a message."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
