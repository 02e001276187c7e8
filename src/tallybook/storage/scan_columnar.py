"""Parquet and ORC files become rows: files with the same columns together, each column read as its file needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.columns import folded
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.base import FILE, ORIGIN, START, Field, Scan, positioned
from tallybook.storage.columnar import ColumnReading, FileReading, UnreadableType, wanted_columns
from tallybook.storage.credentials import reader
from tallybook.storage.damage import unreadable
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.files import as_pattern, exactly, input_files, list_files, plain
from tallybook.storage.folders import check_layout, folder_values, local_files, visible
from tallybook.storage.load import load, with_folder_values
from tallybook.storage.orc import check_time_zone, orc_reading, remote_reading
from tallybook.storage.parquet import parquet_reading

_THREADS = 16
_REMOTE_OPTIONS = {"parquet": (("datetimeRebaseMode", "EXCEPTION"), ("int96RebaseMode", "EXCEPTION")), "orc": ()}
"""Of files elsewhere nobody sees the footer but Spark, which then refuses old dates whose calendar it does not find."""


def scan_columnar(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """The rows at a location, one Scan for each set of files that are read alike; none when nothing is there.

    `first` is the ordinal of the first file among all that make up the table.
    """
    check_layout(spark, location)
    paths, hidden = _files(spark, location)
    groups = _alike(spark, location, paths, [field.physical for field in fields])
    whole = len(groups) == 1 and not hidden
    opened = [_open(spark, location, reading, group, whole) for reading, group in groups.items()]
    ordinals = {file: first + index for index, file in enumerate(sorted(url for each in opened for url in each.files))}
    return tuple(_scan(spark, location, fields, each, ordinals) for each in opened)


def _files(spark: SparkSession, location: Location) -> tuple[list[str], bool]:
    """The files of a place, and whether Spark would find more that are hidden."""
    local = local_files(location)
    if local is not None:
        return [str(path) for path in local], False
    listed = list_files(reader(spark, location), as_pattern(location))
    files = visible(location, listed)
    return [plain(file) for file in files], files != listed


def _alike(
    spark: SparkSession, location: Location, paths: Sequence[str], wanted: Sequence[str]
) -> dict[FileReading, list[str]]:
    """The files by how they are read, because Spark looks at one file only and would fill what another file lacks with
    NULL.

    Local files are asked here: a footer each, many at a time. Files elsewhere are asked through Spark, one small
    request each, also many at a time: slower, but it needs no second set of credentials.
    """
    format = location.source.type
    here = _readable_here(paths)
    look = {"parquet": parquet_reading, "orc": orc_reading}[format]
    groups: dict[FileReading, list[str]] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        readings = pool.map(lambda path: look(path, wanted) if here else _asked(spark, location, path, wanted), paths)
        for reading, path in zip(readings, paths, strict=True):
            groups.setdefault(reading, []).append(path)
    return groups


def _readable_here(paths: Sequence[str]) -> bool:
    """True if this process sees the files too: with Spark Connect the server may be another machine."""
    return all(Path(path).is_file() for path in paths)


def _asked(spark: SparkSession, location: Location, path: str, wanted: Sequence[str]) -> FileReading:
    """The columns of a file that only Spark can see."""
    format = location.source.type
    try:
        schema = reader(spark, location).format(format).load(exactly(path)).schema
    except SPARK_ERRORS as error:
        raise unreadable(format, path) from error
    names = wanted_columns(path, schema.names, wanted)
    listed = schema.names if all(name.startswith("_col") for name in schema.names) else names
    types = {name: schema[name].dataType for name in listed}
    columns = {n: remote_reading(t, n) if format == "orc" else ColumnReading(t) for n, t in types.items()}
    return FileReading(tuple(columns.items()), _REMOTE_OPTIONS[format], frozenset(schema.names))


@dataclass(frozen=True)
class _Opened:
    """Files that are read alike, and a frame that reads them."""

    reading: FileReading
    frame: DataFrame
    files: tuple[str, ...]
    partitions: tuple[str, ...]
    """The columns that are in folder names."""
    both: frozenset[str] = frozenset()
    """The columns that are in the files and in folder names."""


def _open(spark: SparkSession, location: Location, reading: FileReading, paths: Sequence[str], whole: bool) -> _Opened:
    in_folders = folder_values(location, paths[0])
    both = _in_both(reading, paths[0], in_folders)
    if both:  # Spark would give the value of the folder and drop the one in the file
        columns = reader(spark, location).format(location.source.type).options(**dict(reading.options))
        frame, partitions = columns.schema(reading.schema).load([exactly(path) for path in paths]), tuple(in_folders)
    else:
        frame, partitions = load(spark, location, reading.schema, dict(reading.options), None if whole else paths)
    files = input_files(frame)
    if sorted(map(plain, files)) != sorted(paths):  # positions count files
        raise fail("DataLoadError", f"the files of {location} changed while they were opened", hint="run again")
    if both:
        names = {name: _folder_of(name) if name in both else name for name in partitions}
        values = {
            file: {names[name]: value for name, value in folder_values(location, plain(file)).items()} for file in files
        }
        frame = with_folder_values(spark, frame, ORIGIN[FILE], list(names.values()), values)
    return _Opened(reading, frame, files, partitions, both)


def _in_both(reading: FileReading, path: str, in_folders: Iterable[str]) -> frozenset[str]:
    """The columns that a file has and its folders name; SchemaMismatch if they differ only in case."""
    folders = {folded(name): name for name in in_folders}
    for name, _ in reading.columns:
        folder = folders.get(folded(name), name)
        if folder != name:
            message = f"{path} has the column '{name}', and its folders name '{folder}', which Spark cannot tell apart"
            raise fail("SchemaMismatch", message, hint="rename the column or the folders")
    return frozenset(name for name, _ in reading.columns if name in folders.values())


def _folder_of(name: str) -> str:
    """The value that has the text of a folder for a column that is in the file, too."""
    return sql.internal(f"folder of {name}")


def _scan(
    spark: SparkSession, location: Location, fields: Sequence[Field], opened: _Opened, ordinals: Mapping[str, int]
) -> Scan:
    columns = dict(opened.reading.columns)
    here = [field.physical for field in fields if field.physical in columns or field.physical in opened.partitions]
    values = {name: _value(name, columns.get(name)) for name in here}
    doubts = {name: sql.internal(f"doubt of {name}") for name in here if name in columns and columns[name].doubt}
    values |= {doubt: str(columns[name].doubt) for name, doubt in doubts.items()}
    folders = {name: _folder_of(name) for name in here if name in opened.both}
    values |= {folder: sql.name(folder) for folder in folders.values()}
    types = {name: columns[name].type if name in columns else T.StringType() for name in here}
    frame = opened.frame
    if location.source.type == "parquet":
        frame, values = positioned(spark, frame, values | ORIGIN, {file: ordinals[file] for file in opened.files})
    else:
        if any(isinstance(type, T.TimestampType) for type in types.values()):
            check_time_zone(spark, "DataLoadError", f"{location} cannot be read")
        values |= {name: ORIGIN[name] for name in (FILE, START)}
    text = frozenset(name for name in here if name not in columns or columns[name].is_text)
    known = opened.reading.names.union(opened.partitions)
    return Scan(frame, values, types, known, opened.files, text, doubts=doubts, folders=folders)


def _value(name: str, column: ColumnReading | None) -> str:
    if column is None or column.value is not None:
        return sql.name(name) if column is None else str(column.value)
    return sql.NULL if isinstance(column.type, T.NullType | UnreadableType) else sql.name(name)
