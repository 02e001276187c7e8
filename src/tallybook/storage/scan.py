"""CSV and JSON files become rows: which files, which columns they have, and the Spark reader that fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.columns import folded
from tallybook.model.datasource import FileOptions
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.base import FILE, ORIGIN, START, Field, Scan, quoted
from tallybook.storage.credentials import reader
from tallybook.storage.failure import reason
from tallybook.storage.files import (
    as_paths,
    as_pattern,
    header_here,
    list_files,
    plain,
    same_columns,
)
from tallybook.storage.folders import check_layout, visible
from tallybook.storage.load import load, texts

_BROKEN = sql.internal("broken")
_SAMPLE = 1000
"""So many JSON lines are looked at to learn which keys there are."""


def scan_text(spark: SparkSession, location: Location, fields: Sequence[Field]) -> tuple[Scan, ...]:
    """The rows at a location, one Scan for each set of files with the same columns; none when nothing is there."""
    check_layout(spark, location)
    listed = list_files(reader(spark, location), as_pattern(location))
    files = visible(location, listed)
    groups = [files] if files else []
    if _has_header(location):
        groups = same_columns(spark, location, files, **read_options(location))
    opened = [_open(spark, location, fields, group, whole=group == listed) for group in groups]
    return tuple(_scan(location, fields, each) for each in opened)


def _open(
    spark: SparkSession, location: Location, fields: Sequence[Field], files: tuple[str, ...], *, whole: bool
) -> _Opened:
    shape = _shape(spark, location, fields, files)
    paths = None if whole else [plain(file) for file in files]
    frame, partitions = load(spark, location, shape.columns, read_options(location), paths)
    return _Opened(frame, files, shape, partitions)


def _scan(location: Location, fields: Sequence[Field], opened: _Opened) -> Scan:
    frame, files, shape, partitions = opened.frame, opened.files, opened.shape, opened.partitions
    own = set(shape.columns.names)
    here = [f.physical for f in fields if f.physical in partitions or f.physical in own - shape.unexpected]
    values = {n: _csv_value(location, n) if n in own else sql.name(n) for n in (*here, *shape.unexpected)}
    values[_BROKEN] = sql.name(_BROKEN)
    values |= {name: ORIGIN[name] for name in (FILE, START)}
    types = {name: opened.frame.schema[name].dataType for name in here}
    known = own.union(partitions, shape.others) - shape.unexpected - {_BROKEN}
    return Scan(frame, values, types, frozenset(known), files, frozenset(here), _broken_row(shape))


@dataclass(frozen=True)
class _Shape:
    """The columns files have; `unexpected` are read only to notice rows that have them after all."""

    columns: T.StructType
    unexpected: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    """Columns that are there and not read, named in a suggestion."""


@dataclass(frozen=True)
class _Opened:
    """Files with the same columns, and a frame that reads them."""

    frame: DataFrame
    files: tuple[str, ...]
    shape: _Shape
    partitions: tuple[str, ...] = ()
    """The columns that stand in folder names."""


def read_options(location: Location) -> dict[str, str | bool]:
    """How Spark is told to read a format.

    CSV is read a file at a time, so that a quoted line break is text, and a doubled quote is a quote. `nullValue`
    stays empty because Spark takes an empty field for NULL beside any other; `null_value` is applied afterwards.
    JSON is given no encoding: UTF-8 is the default, and only then does Spark hand out the digits of a number as they
    stand in the file, where it would otherwise go through a double.
    """
    if location.source.type == "json":
        return {"columnNameOfCorruptRecord": _BROKEN}
    if location.source.type != "csv":
        return {}
    csv = file_options(location)
    return {
        "sep": csv.delimiter,
        "header": csv.has_header,
        "multiLine": True,
        "escape": '"',
        "nullValue": "",
        "encoding": "UTF-8",
        "columnNameOfCorruptRecord": _BROKEN,
    }


def file_options(location: Location) -> FileOptions:
    """The options of a location that is known to be files."""
    options = location.source.options
    if not isinstance(options, FileOptions):
        raise TypeError(f"{location} is no place of files")
    return options


def _has_header(location: Location) -> bool:
    return location.source.type == "csv" and file_options(location).has_header


def _shape(spark: SparkSession, location: Location, fields: Sequence[Field], files: Sequence[str]) -> _Shape:
    if location.source.type == "json":
        return _json_shape(spark, location, fields)
    if location.source.type == "csv" and not _has_header(location):
        return _Shape(T.StructType([*texts([f.physical for f in fields if f.declared]), *texts([_BROKEN])]))
    if _has_header(location) and (names := header_here(files[0], file_options(location).delimiter)) is not None:
        return _header_shape(files[0], names, frozenset(f.physical for f in fields))
    sample = reader(spark, location).format(location.source.type).options(**read_options(location))
    try:
        schema = sample.load(as_paths(files[:1])).schema
    except Exception as error:  # Spark has no one error for "this is not such a file"
        message = f"{plain(files[0])} is not a readable {location.source.type} file: {reason(error)}"
        raise fail("DataLoadError", message) from error
    return _Shape(T.StructType([*schema.fields, *texts([_BROKEN])]))


def _header_shape(file: str, names: Sequence[str], wanted: frozenset[str]) -> _Shape:
    """The columns of a header. One that nobody asks for and that Spark could not tell from another, for they differ by
    case at most, is read under a name of its own."""
    twice = next((name for name in names if name in wanted and names.count(name) > 1), None)
    if twice is not None:
        raise fail("SchemaMismatch", f"{plain(file)} has the column '{twice}' twice", hint="rename one of them")
    alike = Counter(folded(name) for name in names)
    told_apart = (
        name if name in wanted or alike[folded(name)] == 1 else sql.internal(str(index))
        for index, name in enumerate(names)
    )
    return _Shape(T.StructType(texts([*told_apart, _BROKEN])), others=frozenset(names))


def _json_shape(spark: SparkSession, location: Location, fields: Sequence[Field]) -> _Shape:
    """JSON says its columns row by row, so a key is missing only when no row has it.

    Keys are learned from the first lines; only for a declared column not among them is the place searched. A system
    column not among them is taken for absent, and a later row that has it is a broken row.
    """
    lines = reader(spark, location).text(as_pattern(location)).select(F.json_object_keys("value").alias("keys"))
    sampled = lines.where(F.col("keys").isNotNull()).limit(_SAMPLE).select(F.explode("keys").alias("key"))
    keys = {str(row["key"]) for row in sampled.distinct().collect()}
    if not keys:
        return _Shape(T.StructType(texts([*dict.fromkeys(f.physical for f in fields), _BROKEN])))
    for field in fields:
        sought = field.required and field.physical not in keys
        if sought and lines.where(F.array_contains("keys", field.physical)).limit(1).count():
            keys.add(field.physical)
    names = {f.physical for f in fields}
    unexpected = {f.physical for f in fields if not f.required} - keys
    columns = T.StructType(texts([*sorted(keys & names | unexpected), _BROKEN]))
    return _Shape(columns, frozenset(unexpected), frozenset(keys - names))


def _csv_value(location: Location, name: str) -> str:
    """The text of a field, NULL where it equals `null_value`; Spark has made NULL of every empty field."""
    column = sql.name(name)
    if location.source.type != "csv":
        return column
    return f"nullif(coalesce({column}, ''), {sql.text(file_options(location).null_value)})"


def _broken_row(shape: _Shape) -> Column:
    late = [
        F.when(quoted(name).isNotNull(), F.lit(f"{name} stands here, but not in the first {_SAMPLE} rows"))
        for name in sorted(shape.unexpected)
    ]
    return F.coalesce(F.col(_BROKEN), *late)
