"""Writes tables of the Spark session's own catalog: unpartitioned Parquet tables in a folder of this machine.

Spark's own INSERT OVERWRITE removes the old files before it writes the new ones, so a job that fails loses the old
rows. Here the files are staged beside the folder of the table and take its place in one step, as those of an output to
a folder do. The catalog keeps the columns; it does not change when rows are replaced.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import RunError, fail
from tallybook.expressions.tree import quote
from tallybook.model.datasource import DEFAULT_FORMAT, FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.failure import SPARK_ERRORS, error_condition, reason
from tallybook.storage.file_writer import write_files
from tallybook.storage.files import path_of
from tallybook.storage.formats.parquet import PARQUET
from tallybook.storage.output import Output
from tallybook.storage.stage import Written, columns_text

SESSION_CATALOG = "spark_catalog"
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""The key under which Spark keeps the type of a CHAR or VARCHAR column, whose length it checks on INSERT alone."""
_ELSEWHERE = "write to a datasource of type delta, or to a new table of the session's catalog"


def table_name(location: Location) -> str:
    """Returns the name of a table for Spark, each part quoted."""
    return location.target if "`" in location.target else ".".join(map(quote, location.target.split(".")))


def open_table(spark: SparkSession, location: Location) -> DataFrame | None:
    """Returns the rows of a table, None if it does not exist. Its name is a parameter of the query, because
    `spark.table` would expand `${...}` in it."""
    try:
        frame = spark.sql("SELECT * FROM IDENTIFIER(:name)", {"name": table_name(location)})
        frame.schema  # noqa: B018  # Spark Connect looks for the table only when it needs the schema
    except AnalysisException as error:
        if error_condition(error) == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise fail("DataLoadError", f"{location} cannot be opened: {reason(error)}") from error
    return frame


@dataclass(frozen=True)
class _Destination:
    """Where a table has its files, and its columns; None if the table does not exist yet."""

    folder: str
    columns: T.StructType | None


def write_table(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
    """Replaces the rows of a table or adds to them. A table that does not exist is created directly before its rows
    become visible."""
    destination = _destination(spark, location)
    rows = frame if destination.columns is None else _in_order(frame, destination.columns, location)
    source = FileSource(id=location.source.id, type=DEFAULT_FORMAT, options=FileOptions(path_prefix=destination.folder))
    if destination.columns is None:
        output = _creating(spark, frame, location, destination, output)
    written = write_files(PARQUET, spark, rows, Location(source, destination.folder), output)
    with suppress(*SPARK_ERRORS):  # the rows are visible; only this session may still know the old files
        spark.sql("REFRESH TABLE IDENTIFIER(:name)", {"name": table_name(location)})
    return replace(written, columns=tuple(frame.columns))


def _destination(spark: SparkSession, location: Location) -> _Destination:
    """Finds the folder of a table. Raises WriteFailed for a table that cannot be replaced in one step."""
    try:
        described = spark.sql("DESCRIBE TABLE EXTENDED IDENTIFIER(:name) AS JSON", {"name": table_name(location)})
        facts: dict[str, Any] = json.loads(described.collect()[0][0])
    except AnalysisException as error:
        if error_condition(error) == "TABLE_OR_VIEW_NOT_FOUND":
            return _Destination(_new_folder(spark, location), None)
        if error_condition(error) == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE":
            raise _refused(location, "it belongs to another catalog than the session's own") from error
        raise fail("WriteFailed", f"{location} cannot be opened: {reason(error)}") from error
    if facts.get("type") == "VIEW" or "location" not in facts:
        raise _refused(location, "it is a view")
    if facts.get("provider") != PARQUET.type:
        raise _refused(location, f"it is stored as {facts.get('provider')}, not as Parquet")
    if facts.get("partition_columns") or facts.get("num_buckets"):
        raise _refused(location, "it is partitioned or bucketed")
    frame = open_table(spark, location)
    assert frame is not None, "a table that was described exists"
    return _Destination(path_of(facts["location"]), frame.schema)


def _new_folder(spark: SparkSession, location: Location) -> str:
    """Returns the folder that the catalog will give a new table."""
    *schema, table = _parts(location)
    where = ".".join(map(quote, schema)) or quote(spark.catalog.currentDatabase())
    try:
        described = spark.sql("DESCRIBE NAMESPACE EXTENDED IDENTIFIER(:name)", {"name": where})
        facts = {row[0]: row[1] for row in described.collect()}
    except AnalysisException as error:
        hint = f"create it: CREATE SCHEMA {where}"
        raise fail("WriteFailed", f"{location} cannot be created: {reason(error)}", hint=hint) from error
    if facts.get("Catalog Name") != SESSION_CATALOG or not facts.get("Location"):
        raise _refused(location, f"catalog '{facts.get('Catalog Name')}' is not the session's own")
    sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return f"{path_of(facts['Location']).rstrip('/')}/{table if sensitive else table.lower()}"


def _parts(location: Location) -> list[str]:
    """Returns the parts of a name, without quotes."""
    parts, quoted = [""], False
    for letter in location.target:
        if letter == "`":
            quoted = not quoted
        elif letter == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _creating(
    spark: SparkSession, frame: DataFrame, location: Location, destination: _Destination, output: Output
) -> Output:
    """Returns the output with a guard that creates the table once the run is known to own its right to write."""

    def check() -> None:
        output.guard.check()
        try:
            spark.catalog.createTable(table_name(location), source=PARQUET.type, schema=_nullable(frame.schema))
        except AnalysisException as error:
            raise fail("WriteFailed", f"{location} cannot be created: {reason(error)}") from error
        created = _destination(spark, location).folder
        if PurePosixPath(created) != PurePosixPath(destination.folder):
            spark.sql("DROP TABLE IDENTIFIER(:name)", {"name": table_name(location)})
            raise _refused(location, f"the catalog keeps it in {created} instead of {destination.folder}")

    return replace(output, guard=replace(output.guard, check=check))


def _nullable(schema: T.StructType) -> T.StructType:
    return T.StructType([T.StructField(field.name, field.dataType) for field in schema.fields])


def _in_order(frame: DataFrame, columns: T.StructType, location: Location) -> DataFrame:
    """Returns the columns of the output in the order of an existing table. Raises WriteFailed if they are others."""
    existing = T.StructType([T.StructField(field.name, field.dataType) for field in columns.fields])
    lengths = {field.name for field in columns.fields if _LENGTH in field.metadata}
    if lengths or {f.name: f.dataType for f in existing} != {f.name: f.dataType for f in frame.schema}:
        limited = f" (with a maximum length: {', '.join(sorted(lengths))})" if lengths else ""
        raise fail(
            "WriteFailed",
            f"{location} has the columns {columns_text(existing)}{limited}; the output has "
            f"{columns_text(frame.schema)}",
            hint="an output keeps the columns of a table: write these columns, or drop the table first",
        )
    return frame.select(*(sql.name(name) for name in existing.names))


def _refused(location: Location, why: str) -> RunError:
    return fail("WriteFailed", f"{location} cannot be replaced in one step: {why}", hint=_ELSEWHERE)
