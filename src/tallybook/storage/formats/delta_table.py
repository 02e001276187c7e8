"""Reads Delta tables without a jar: delta-rs reads the log, Spark the Parquet files in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import RunError, fail
from tallybook.model.location import ABSENT, Location
from tallybook.rows import sql
from tallybook.storage.credentials import delta_options, reader
from tallybook.storage.failure import SPARK_ERRORS, error_condition, missing_connector, refused_by_store
from tallybook.storage.files import escape_pattern, input_files, path_of
from tallybook.storage.formats.delta_log import log_fault
from tallybook.storage.load import with_folder_values
from tallybook.storage.notation import ISO
from tallybook.storage.scan import FILE, NAME, ORIGIN, ROW, START, Field, Scan, positioned

_READER_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""The features of a table that can be read. Deletion vectors and column mapping change what the rows of a file mean."""


def table_root(location: Location) -> str:
    """Returns the table's folder, in a form that both delta-rs and Spark accept."""
    local = location.local_path
    return location.target.rstrip("/") if local is None else str(Path(local).resolve())


def open_table(location: Location) -> DeltaTable | None:
    """Returns the table at its pinned version, or the latest; None if there is no table, or was none at plan time."""
    if location.version == ABSENT:
        return None
    try:
        return DeltaTable(table_root(location), version=location.version, storage_options=delta_options(location))
    except TableNotFoundError:
        if location.version is None:
            return None
        raise _without_version(location) from None
    except (DeltaError, OSError) as error:
        if location.local_path is None and isinstance(error, OSError):
            raise _refused(location, error) from error
        raise (_unreadable(location, error) if location.version is None else _without_version(location)) from error


def table_schema(table: DeltaTable) -> T.StructType:
    """Returns the table's columns as Spark types."""
    return T.StructType.fromJson(json.loads(table.schema().to_json()))


def scan_delta(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """Returns the rows of one version; none if there is no table.

    A column that a file lacks is NULL: the log defines the columns, so the column was added after the file.
    """
    table = open_table(location)
    if table is None:
        return ()
    rows = open_files(spark, location, table, table_files(location, table))
    schema = table_schema(table)
    present = [f.physical for f in fields if f.physical in schema.names]
    ordinals = {url: first + index for index, url in enumerate(sorted(rows.files))}
    values = {name: sql.name(name) for name in present}
    frame, values = positioned(spark, rows.frame, {**values, **rows.origin}, ordinals)
    types = {name: schema[name].dataType for name in present}
    partitions = dict.fromkeys(table.metadata().partition_columns, ISO)
    return (Scan(frame, values, types, frozenset(schema.names), tuple(sorted(rows.files)), partitions),)


@dataclass(frozen=True)
class TableFile:
    """A file in the log of a table."""

    path: str
    """Its path as the log has it: encoded, and usually relative to the table."""
    size: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the partition columns in its rows, as text."""
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """What the log says of its rows: `num_records`, and by column `min`, `max` and `null_count`."""

    def absolute(self, location: Location) -> str:
        """Returns the path or url of the file."""
        decoded = unquote(self.path)
        return path_of(decoded) if urlsplit(self.path).scheme else f"{table_root(location)}/{decoded}"


@dataclass(frozen=True)
class OpenedFiles:
    """The rows of some files of a table."""

    frame: DataFrame
    """The columns of the table. Partition columns are text."""
    files: Mapping[str, TableFile]
    """The files by their urls, as Spark spells them."""
    origin: Mapping[str, str]
    """SQL for the origin of a row."""


def table_files(location: Location, table: DeltaTable) -> tuple[TableFile, ...]:
    """Returns the files of a version of a table, as its log lists them."""
    try:
        _refuse_unsupported(location, table)
        actions = pa.table(table.get_add_actions())
    except DeltaError as error:
        raise _unreadable(location, error) from error
    if location.local_path is not None and (fault := log_fault(table_root(location), table.version())):
        raise _damaged(location, fault)
    partitions = _partitions(actions, table.metadata().partition_columns)
    return tuple(
        TableFile(action["path"], action["size_bytes"], values, action)
        for action, values in zip(actions.to_pylist(), partitions, strict=True)
    )


def _partitions(actions: pa.Table, names: Sequence[str]) -> Iterable[dict[str, str | None]]:
    """Returns the values of the partition columns of each file. Arrow writes them as text, because Python has no year
    after 9999."""
    if not names or not actions.num_rows:
        return [{} for _ in range(actions.num_rows)]
    values = actions["partition"].combine_chunks()
    texts = [values.field(name).cast(pa.string()).to_pylist() for name in names]
    return [dict(zip(names, of_file, strict=True)) for of_file in zip(*texts, strict=True)]


def open_files(spark: SparkSession, location: Location, table: DeltaTable, files: Sequence[TableFile]) -> OpenedFiles:
    """Returns the rows of some files of a table. A file that is missing or has another size is a problem."""
    by_path = {file.absolute(location): file for file in files}
    _check_files(location, {path: file.size for path, file in by_path.items()})
    partitions = sorted(table.metadata().partition_columns)
    stored = T.StructType([column for column in table_schema(table).fields if column.name not in partitions])
    frame, urls, origin = _rows(spark, location, stored, tuple(by_path))
    of_urls = {url: by_path[path] for url, path in urls.items()}
    if partitions:
        values = {url: file.partition for url, file in of_urls.items()}
        frame = with_folder_values(spark, frame, origin[FILE], partitions, values)
    return OpenedFiles(frame, of_urls, origin)


def _rows(
    spark: SparkSession, location: Location, stored: T.StructType, files: Sequence[str]
) -> tuple[DataFrame, dict[str, str], dict[str, str]]:
    """Returns the rows of files, the path of each file by its url as Spark spells it, and SQL for the origin of a
    row."""
    if not files:
        texts = [T.StructField(name, T.StringType()) for name in (FILE, NAME)]
        origin = [*texts, *(T.StructField(name, T.LongType()) for name in (START, ROW))]
        frame = spark.createDataFrame([], T.StructType([*stored.fields, *origin]))
        return frame, {}, {name: sql.name(name) for name in ORIGIN}
    try:
        parquet = reader(spark, location).options(datetimeRebaseMode="CORRECTED", int96RebaseMode="CORRECTED")
        frame = parquet.schema(stored).parquet(*(escape_pattern(file) for file in files))
        urls = {url: path_of(url) for url in input_files(frame)}
    except SPARK_ERRORS as error:
        if error_condition(error) == "PATH_NOT_FOUND":
            raise _gone(location, "a file in its log does not exist") from error
        if missing := missing_connector(error, location.target):
            raise fail("DataLoadError", missing[0], hint=missing[1]) from error
        raise
    if set(urls.values()) != set(files):
        raise fail("DataLoadError", f"Spark reads other files than those in the log of {location}")
    return frame, urls, ORIGIN


def _refuse_unsupported(location: Location, table: DeltaTable) -> None:
    needs = set(table.protocol().reader_features or ()) - _READER_FEATURES
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        needs.add("columnMapping")
    if needs:
        raise fail(
            "SchemaMismatch",
            f"{location} uses Delta features that cannot be read: {', '.join(sorted(needs))}",
            hint="drop the features from the table, or read it as a spark_catalog table where Spark has Delta itself",
        )


def _check_files(location: Location, sizes: Mapping[str, int]) -> None:
    """Raises a problem if a local file is missing, or its size differs from the log."""
    if location.local_path is None:
        return
    for path, size in sizes.items():
        try:
            actual = Path(path).stat().st_size
        except OSError as error:
            if Path(table_root(location)).is_dir():
                raise _gone(location, f"{path} does not exist") from error
            return  # only Spark can read the table
        if actual != size:
            raise fail(
                "DataLoadError",
                f"{path} is damaged: it has {actual:,} bytes, but {size:,} in the log of the table",
                hint="replace the file with a good copy, or restore the table from a backup",
            )


def _without_version(location: Location) -> RunError:
    """Returns the error for a table that lacks the version to read."""
    assert location.version is not None
    local = location.local_path is not None
    if local and (fault := log_fault(table_root(location), location.version)):
        return _damaged(location, fault)
    try:
        newest = DeltaTable(table_root(location), storage_options=delta_options(location)).version()
    except (DeltaError, OSError):
        return _gone(location, "the table no longer exists")
    if newest < location.version:
        return _gone(location, f"the newest version of the table is {newest}")
    return _gone(location, "log entries of that version were removed")


def _refused(location: Location, error: OSError) -> RunError:
    """Returns the error for an object store that does not answer, or does not let the table be read."""
    refused, cause = refused_by_store(error)
    return fail(
        "DataLoadError",
        f"{location} cannot be opened: {refused}",
        hint="check the bucket, `credential_ref`, `endpoint` and `region` of the datasource",
        cause=cause,
    )


def _unreadable(location: Location, error: Exception) -> RunError:
    """Returns the error for a log that delta-rs cannot read."""
    if "Unsupported" in str(error):
        return fail(
            "SchemaMismatch",
            f"{location} uses Delta features that cannot be read",
            hint="read it as a spark_catalog table where Spark has Delta itself",
        )
    fault = log_fault(table_root(location)) if location.local_path is not None else None
    return _damaged(location, fault or "its entries are incomplete or contradict each other")


def _damaged(location: Location, fault: str) -> RunError:
    return fail(
        "DataLoadError",
        f"the log of {location} is damaged: {fault}",
        hint="restore the table from a backup; rows that the damaged entry added would be missing",
    )


def _gone(location: Location, reason: str) -> RunError:
    return fail(
        "DataNotFound",
        f"{location} can no longer be read: {reason}",
        hint="a cleanup of the table may have removed files or log entries of the version; restore them from a backup",
    )
