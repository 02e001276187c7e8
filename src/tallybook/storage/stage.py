"""Spark writes the rows of an output where nobody looks yet, and says what it has written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.datasource import FileOptions
from tallybook.model.location import Location
from tallybook.rows.raising import parse_raised, raising
from tallybook.storage.base import quoted
from tallybook.storage.credentials import reader, spark_options
from tallybook.storage.failure import SPARK_ERRORS, refused_files
from tallybook.storage.files import exactly, file_options, list_files
from tallybook.storage.orc import check_time_zone, exact_in_orc
from tallybook.storage.publish import remove
from tallybook.storage.read import read_options

_EXACT_PATH: dict[str, str | bool] = {
    "spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
}
"""Makes Spark hand the committer its path. Otherwise the path goes through a setting of Hadoop's, where `${...}` is
replaced: the folder would be named after an environment variable. Spark does so for Parquet by itself."""
_TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_INEXACT = {
    "orc": ("an ORC file", "write Parquet or Delta instead"),
    "csv": ("a CSV file without a header", "set has_header: true in the datasource, or write Parquet or Delta instead"),
}
"""How messages name the files that cannot hold a value, and what to do."""


@dataclass(frozen=True)
class Written:
    """What an output has written. `version` is what a reader needs to find these rows again."""

    rows: int
    columns: tuple[str, ...]
    version: int | None = None


@dataclass(frozen=True)
class Part:
    """A written file that has rows."""

    name: str
    size: int
    rows: int


def stage(
    spark: SparkSession, frame: DataFrame, location: Location, path: str, *, single: bool = False
) -> tuple[Part, ...]:
    """Write the rows into a folder of their own, as a single file where that is asked for.

    Rows are counted in the files, not in the job: a counter inside the job counts a retried task twice. For Parquet
    and ORC that reads footers, for CSV and JSON the text just written; the rows are never computed again.
    """
    format = "parquet" if location.source.type == "delta" else location.source.type
    ready = frame
    if format == "csv":
        ready = _as_csv(frame, file_options(location))
    elif format == "orc":
        if any(isinstance(field.dataType, T.TimestampType) for field in frame.schema.fields):
            check_time_zone(spark, "WriteFailed", f"{location} cannot be written")
        ready = exact_in_orc(frame)
    whole = {"maxRecordsPerFile": "0"} if single else {}
    ready = ready.repartition(1) if single else ready
    try:
        ready.write.format(format).options(**spark_options(location), **_write_options(location), **whole).save(path)
        return (_footers(path) if format == "parquet" else ()) or _counted(spark, frame, location, format, path)
    except SPARK_ERRORS as error:
        raised = parse_raised(error) or {}
        if raised.get("type") == "WriteFailed":
            kind, hint = _INEXACT[format]
            raise fail(
                "WriteFailed",
                f"{location} could not be written: column '{raised.get('column')}' has the value "
                f"{raised.get('value')}, which cannot be stored exactly in {kind}",
                hint=hint,
            ) from error
        refused = refused_files(error)
        if refused is None:
            raise
        raise fail("WriteFailed", f"{location} could not be written: {refused}") from error


def _footers(path: str) -> tuple[Part, ...]:
    """The parts of a Parquet folder this process can see; none when it is elsewhere, or empty."""
    folder = Path(path.removeprefix("file:"))
    files = sorted(folder.glob("[!._]*.parquet")) if folder.is_dir() else []
    counted = ((file, pq.read_metadata(file).num_rows) for file in files)
    return tuple(Part(file.name, file.stat().st_size, rows) for file, rows in counted if rows)


def _counted(spark: SparkSession, frame: DataFrame, location: Location, format: str, path: str) -> tuple[Part, ...]:
    columns = T.StructType([T.StructField(name, T.StringType()) for name in frame.columns])
    written = reader(spark, location).format(format).schema(columns).options(**read_options(location))
    parts = written.load(exactly(path)).groupBy("_metadata.file_name", "_metadata.file_size").count().collect()
    return tuple(sorted((Part(row[0], row[1], row[2]) for row in parts), key=lambda part: part.name))


def clear(spark: SparkSession, location: Location, path: str) -> None:
    """Remove a folder that earlier attempts may have left.

    Overwriting it with no rows is the one way to delete that Spark offers on every file system; an empty file stays.
    """
    if not urlsplit(path).scheme:
        remove(Path(path))
    elif list_files(reader(spark, location), f"{exactly(path)}/*"):
        nothing = spark.createDataFrame([], "nothing int")
        nothing.write.options(**spark_options(location)).mode("overwrite").parquet(path)


def _write_options(location: Location) -> dict[str, str | bool]:
    """How Spark is told to write a format, so that other readers see the same values.

    Parquet timestamps are microseconds in UTC, not INT96. Text keeps its spaces and a timestamp its microseconds,
    both of which Spark cuts unless told. JSON writes NULLs, so that each row names every column.
    """
    match location.source.type:
        case "parquet" | "delta":
            return {
                "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
                "spark.sql.parquet.writeLegacyFormat": "false",
            }
        case "json":
            return _EXACT_PATH | {
                "ignoreNullFields": False,
                "timestampFormat": _TIMESTAMP,
                "timeZone": "UTC",
                "encoding": "UTF-8",
            }
        case "csv":
            csv = file_options(location)
            return _EXACT_PATH | {
                "sep": csv.delimiter,
                "header": csv.has_header,
                "nullValue": csv.null_value,
                "escape": '"',
                "ignoreLeadingWhiteSpace": False,
                "ignoreTrailingWhiteSpace": False,
                "timestampFormat": _TIMESTAMP,
                "timeZone": "UTC",
                "encoding": "UTF-8",
            }
    return dict(_EXACT_PATH)


def _as_csv(frame: DataFrame, options: FileOptions) -> DataFrame:
    """Decimals as plain digits (Spark writes 0E-10), and no empty line for a row whose only value is NULL: readers
    skip empty lines. Without a header, a text in the first column that begins with a byte order mark fails the job,
    because readers drop the mark at the start of a file."""
    decimals = {field.name for field in frame.schema.fields if isinstance(field.dataType, T.DecimalType)}
    columns = {name: quoted(name).cast("string") if name in decimals else quoted(name) for name in frame.columns}
    if len(columns) == 1 and not options.null_value:
        columns = {name: F.coalesce(value.cast("string"), F.lit("")) for name, value in columns.items()}
    first = frame.schema.fields[0]
    if not options.has_header and isinstance(first.dataType, T.StringType):
        failure = raising("WriteFailed", column=first.name, value=quoted(first.name))
        columns[first.name] = F.when(quoted(first.name).startswith("\ufeff"), failure).otherwise(columns[first.name])
    return frame.select(*(value.alias(name) for name, value in columns.items()))


def columns_text(schema: T.StructType) -> str:
    """Columns as a message lists them."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
