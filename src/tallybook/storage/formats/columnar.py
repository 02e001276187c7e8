"""Reads Parquet and ORC files: those with the same columns together, and each column as its file requires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.exit_codes import BUSY
from tallybook.model.columns import folded
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.credentials import reader
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.files import escape_pattern, input_files, list_files, path_of, reader_path
from tallybook.storage.folders import check_layout, folder_values, local_files, visible
from tallybook.storage.formats.column_reading import ColumnReading, FileReading, UnreadableType, wanted_columns
from tallybook.storage.formats.plain_files import PlainFiles
from tallybook.storage.formats.signature import Signature, unreadable
from tallybook.storage.load import load, with_folder_values
from tallybook.storage.notation import ISO
from tallybook.storage.scan import FILE, ORIGIN, START, Field, Scan

_THREADS = 16
_FEW = 8
"""So many footers of local files are read one after the other: starting threads would take longer."""


@dataclass(frozen=True)
class OpenedFiles:
    """Files that are read in the same way, and a frame that reads them."""

    reading: FileReading
    frame: DataFrame
    files: tuple[str, ...]
    partitions: tuple[str, ...]
    """The columns that are in folder names."""
    both: frozenset[str] = frozenset()
    """The columns that are in the files and in folder names."""


class ColumnarFiles(PlainFiles, ABC):
    """A format of files whose footer describes their columns."""

    signature: ClassVar[Signature]
    expands_names = True

    remote_options: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Options of Spark's reader for files whose footer only Spark can read."""

    @abstractmethod
    def local_reading(self, path: str, wanted: Iterable[str]) -> FileReading:
        """Returns how to read the wanted columns of a file of this machine, by its footer."""

    def remote_reading(self, type: T.DataType, name: str) -> ColumnReading:
        """Returns how to read a column of a file whose footer only Spark can read."""
        return ColumnReading(type)

    def check_types(self, spark: SparkSession, location: Location, types: Iterable[T.DataType]) -> None:
        """Raises DataLoadError if Spark would misread a type in this session."""

    def located(
        self, spark: SparkSession, opened: OpenedFiles, values: dict[str, str], ordinals: Mapping[str, int]
    ) -> tuple[DataFrame, dict[str, str]]:
        """Returns the rows, and their values together with FILE, START and the like."""
        return opened.frame, values | {name: ORIGIN[name] for name in (FILE, START)}

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        check_layout(spark, location)
        paths, hidden = _files(spark, location)
        groups = _files_by_reading(self, spark, location, paths, [field.physical for field in fields])
        whole = len(groups) == 1 and not hidden
        opened = [_open(self, spark, location, reading, group, whole) for reading, group in groups.items()]
        urls = sorted(url for files in opened for url in files.files)
        ordinals = {url: first + index for index, url in enumerate(urls)}
        return tuple(_scan(self, spark, location, fields, files, ordinals) for files in opened)


def _files(spark: SparkSession, location: Location) -> tuple[list[str], bool]:
    """Returns the files of a location, and True if Spark would also read hidden ones."""
    local = local_files(location)
    if local is not None:
        return [str(path) for path in local], False
    listed = list_files(reader(spark, location), reader_path(location))
    files = visible(location, listed)
    return [path_of(file) for file in files], files != listed


def _files_by_reading(
    format: ColumnarFiles, spark: SparkSession, location: Location, paths: Sequence[str], wanted: Sequence[str]
) -> dict[FileReading, list[str]]:
    """Groups files by how to read them, because Spark inspects only one file and would fill columns that another file
    lacks with NULL.

    The footers of local files are read here, many at a time. Those of other files are read by Spark in one small
    request each, also many at a time, which is slower but needs no second set of credentials.
    """
    local = _readable_here(paths)
    groups: dict[FileReading, list[str]] = {}

    def reading_of(path: str) -> FileReading:
        return format.local_reading(path, wanted) if local else _remote_reading(format, spark, location, path, wanted)

    names: dict[FileReading, frozenset[str]] = {}
    for reading, path in zip(_of_each(reading_of, paths, at_once=not local or len(paths) > _FEW), paths, strict=True):
        groups.setdefault(reading, []).append(path)
        names[reading] = names.get(reading, frozenset()) | reading.names
    return {replace(reading, names=names[reading]): files for reading, files in groups.items()}


def _of_each(reading_of: Callable[[str], FileReading], paths: Sequence[str], *, at_once: bool) -> list[FileReading]:
    if not at_once:
        return list(map(reading_of, paths))
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(reading_of, paths))


def _readable_here(paths: Sequence[str]) -> bool:
    """True if this process can read the files too: with Spark Connect the server may be another machine."""
    return all(Path(path).is_file() for path in paths)


def _remote_reading(
    format: ColumnarFiles, spark: SparkSession, location: Location, path: str, wanted: Sequence[str]
) -> FileReading:
    """Returns how to read the columns of a file that only Spark can read."""
    try:
        schema = reader(spark, location).format(format.type).load(escape_pattern(path)).schema
    except SPARK_ERRORS as error:
        raise unreadable(format.signature, path) from error
    names = wanted_columns(path, schema.names, wanted)
    listed = schema.names if all(name.startswith("_col") for name in schema.names) else names
    columns = tuple((name, format.remote_reading(schema[name].dataType, name)) for name in listed)
    return FileReading(columns, format.remote_options, frozenset(schema.names))


def _open(
    format: ColumnarFiles,
    spark: SparkSession,
    location: Location,
    reading: FileReading,
    paths: Sequence[str],
    whole: bool,
) -> OpenedFiles:
    in_folders = folder_values(location, paths[0])
    both = _in_both(reading, paths[0], in_folders)
    if both:  # Spark would use the value of the folder and drop the one in the file
        columns = reader(spark, location).format(format.type).options(**dict(reading.options))
        frame, partitions = (
            columns.schema(reading.schema).load([escape_pattern(path) for path in paths]),
            tuple(in_folders),
        )
    else:
        frame, partitions = load(
            spark, location, format.type, reading.schema, dict(reading.options), None if whole else paths
        )
    files = input_files(frame)
    if sorted(map(path_of, files)) != sorted(paths):  # positions count files
        message = f"the files of {location} changed while the run opened them"
        raise fail("DataLoadError", message, hint="run again", cause=BUSY)
    if both:
        names = {name: _folder_of(name) if name in both else name for name in partitions}
        values = {
            file: {names[name]: value for name, value in folder_values(location, path_of(file)).items()}
            for file in files
        }
        frame = with_folder_values(spark, frame, ORIGIN[FILE], list(names.values()), values)
    return OpenedFiles(reading, frame, files, partitions, both)


def _in_both(reading: FileReading, path: str, in_folders: Iterable[str]) -> frozenset[str]:
    """Returns the columns that are in a file and in its folder names. Raises SchemaMismatch if they differ only by
    case."""
    folders = {folded(name): name for name in in_folders}
    for name, _ in reading.columns:
        folder = folders.get(folded(name), name)
        if folder != name:
            message = f"{path} has the column '{name}', and its folders name '{folder}', which Spark cannot tell apart"
            raise fail("SchemaMismatch", message, hint="rename the column or the folders")
    return frozenset(name for name, _ in reading.columns if name in folders.values())


def _folder_of(name: str) -> str:
    """Returns the name of the value with the text of a folder, for a column that is also in the file."""
    return sql.internal(f"folder of {name}")


def _scan(
    format: ColumnarFiles,
    spark: SparkSession,
    location: Location,
    fields: Sequence[Field],
    opened: OpenedFiles,
    ordinals: Mapping[str, int],
) -> Scan:
    columns = dict(opened.reading.columns)
    present = [field.physical for field in fields if field.physical in columns or field.physical in opened.partitions]
    values = {name: _value(name, columns.get(name)) for name in present}
    doubts = {name: sql.internal(f"doubt of {name}") for name in present if name in columns and columns[name].doubt}
    values |= {doubt: str(columns[name].doubt) for name, doubt in doubts.items()}
    folders = {name: _folder_of(name) for name in present if name in opened.both}
    values |= {folder: sql.name(folder) for folder in folders.values()}
    types = {name: columns[name].type if name in columns else T.StringType() for name in present}
    format.check_types(spark, location, types.values())
    frame, values = format.located(spark, opened, values, ordinals)
    text = {name: ISO for name in present if name not in columns or columns[name].is_text}
    column_names = opened.reading.names.union(opened.partitions)
    return Scan(frame, values, types, column_names, opened.files, text, doubts=doubts, folders=folders)


def _value(name: str, column: ColumnReading | None) -> str:
    if column is None or column.value is not None:
        return sql.name(name) if column is None else str(column.value)
    return sql.NULL if isinstance(column.type, T.NullType | UnreadableType) else sql.name(name)
