"""Lets Spark write the rows of an output into a folder that nobody reads yet, and counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.location import Location
from tallybook.rows.raising import parse_raised
from tallybook.storage.credentials import reader, spark_options
from tallybook.storage.failure import SPARK_ERRORS, is_full, missing_connector, refused_files
from tallybook.storage.files import escape_pattern, list_files, path_of
from tallybook.storage.partitions import UNNAMABLE, raise_unnamable, values_of
from tallybook.storage.publish import remove

if TYPE_CHECKING:
    from tallybook.storage.formats.plain_files import PlainFiles


@dataclass(frozen=True)
class Written:
    """What an output has written."""

    rows: int
    columns: tuple[str, ...]
    version: int | None = None
    """The version of a table that has these rows."""
    periods: tuple[str, ...] = ()
    """The periods whose rows were replaced, with `mode: replace_period`."""


@dataclass(frozen=True)
class StagedFile:
    """A written file that has rows."""

    name: str
    """Its path below the folder that was staged."""
    size: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The values in the names of its folders."""


def stage(
    format: PlainFiles,
    spark: SparkSession,
    frame: DataFrame,
    location: Location,
    path: str,
    *,
    single: bool = False,
    ordered: bool = False,
    partition_by: Sequence[str] = (),
) -> tuple[StagedFile, ...]:
    """Writes the rows as files of a format into a new folder, or as a single file in it, or into folders named after
    the values of columns. Rows that are `ordered` are in one partition already; moving them again could lose their
    order.

    Rows are counted in the files, because a counter in the job would count a retried task twice. For Parquet and ORC
    that reads footers, for CSV and JSON the text just written; the rows are not computed again.
    """
    ready = format.prepared(spark, frame, location)
    ready = raise_unnamable(ready, partition_by) if partition_by else ready
    whole = {"maxRecordsPerFile": "0"} if single or ordered else {}
    ready = ready.repartition(1) if single and not ordered else ready
    options = {**spark_options(location), **format.write_options(location), **whole}
    try:
        return format.save(spark, frame, ready, location, path, options, partition_by)
    except SPARK_ERRORS as error:
        raised = parse_raised(error) or {}
        if raised.get("reason") == UNNAMABLE:
            value = f"the text '{raised['value']}'" if raised.get("value") else "an empty text"
            raise fail(
                "WriteFailed",
                f"{location} could not be written: column '{raised.get('column')}' of `partition_by` has {value}, "
                "which readers of a partition take for NULL",
                hint="leave the column out of `partition_by`, or replace the text with an update",
            ) from error
        if raised.get("type") == "WriteFailed":
            raise fail(
                "WriteFailed",
                f"{location} could not be written: column '{raised.get('column')}' has the value "
                f"{raised.get('value')}, which cannot be stored exactly {raised.get('form') or f'in {format.inexact}'}",
                hint=format.inexact_hint,
            ) from error
        if missing := missing_connector(error, location.target):
            raise fail("WriteFailed", missing[0], hint=missing[1]) from error
        refused = refused_files(error)
        if refused is None:
            raise
        cause = UNAVAILABLE if is_full(refused) else None
        raise fail("WriteFailed", f"{location} could not be written: {refused}", cause=cause) from error


def count_staged_files(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, path: str
) -> tuple[StagedFile, ...]:
    """Returns the files of a staged folder that have rows, with the rows counted by Spark."""
    columns = T.StructType([T.StructField(name, T.StringType()) for name in frame.columns])
    written = reader(spark, location).format(format.type).schema(columns).options(**format.read_options(location))
    rows = written.load(escape_pattern(path)).groupBy("_metadata.file_path", "_metadata.file_size").count().collect()
    return tuple(sorted((staged_file(path, path_of(row[0]), row[1], row[2]) for row in rows), key=_name))


def staged_file(folder: str, file: str, size: int, rows: int) -> StagedFile:
    """Returns a file that was staged in a folder or in the folders below it that are named after values."""
    name = file.removeprefix(folder.removeprefix("file:")).lstrip("/")
    return StagedFile(name, size, rows, values_of(name.split("/")[:-1]))


def _name(file: StagedFile) -> str:
    return file.name


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
