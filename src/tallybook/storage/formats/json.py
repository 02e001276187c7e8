"""JSON files with one object on each line."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.credentials import reader
from tallybook.storage.files import check_compression, list_files, path_of, reader_path, reader_paths
from tallybook.storage.folders import check_layout, folder_values, visible
from tallybook.storage.formats.base import register
from tallybook.storage.formats.json_lines import STRICT, find_keys
from tallybook.storage.formats.plain_files import EXACT_PATH, TEXT_OPTIONS, Options, PlainFiles
from tallybook.storage.load import broken_row, check_names, load, texts, with_folder_values
from tallybook.storage.notation import ISO
from tallybook.storage.scan import FILE, ORIGIN, START, Field, Scan, quoted

_BROKEN, _NO_KEY = map(sql.internal, ("broken", "no key"))
_OPTIONS = {"columnNameOfCorruptRecord": _BROKEN, **STRICT}
"""The options with which Spark reads JSON. They have no encoding: UTF-8 is the default, and with an explicit encoding
Spark would convert numbers to doubles instead of keeping their digits."""


class Json(PlainFiles):
    """JSON: a line is a row, and its keys are the columns."""

    type = "json"
    names_columns = True
    row_hint = "each line must be one JSON object"

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        return _scan(spark, location, fields)

    def read_options(self, location: Location) -> Options:
        return _OPTIONS

    def write_options(self, location: Location) -> Options:
        """Returns options that write NULLs, so that each row has every column."""
        return {**EXACT_PATH, **TEXT_OPTIONS, "ignoreNullFields": False}


JSON = register(Json())


def _scan(spark: SparkSession, location: Location, fields: Sequence[Field]) -> tuple[Scan, ...]:
    """Returns the rows at a location as one Scan; none if there are no files.

    A column is missing only if no row has its key. Files without rows have all columns.
    """
    check_layout(spark, location)
    listed = list_files(reader(spark, location), reader_path(location))
    files = visible(location, listed)
    check_compression(files)
    if not files:
        return ()
    whole = files == listed
    wanted = list(dict.fromkeys(field.physical for field in fields))
    keys = find_keys(reader(spark, location), [reader_path(location)] if whole else reader_paths(files), wanted)
    own = [name for name in wanted if keys is None or name in keys]
    in_folders = folder_values(location, path_of(files[0]))
    check_names(location, [*own, *in_folders])
    both = {name: sql.internal(f"folder of {name}") for name in own if name in in_folders} if keys else {}
    columns = T.StructType(texts([*(own or [_NO_KEY]), _BROKEN]))
    if both:  # Spark would use the value of the folder and drop the one in the row
        names = [both.get(name, name) for name in in_folders]
        values = {
            file: dict(zip(names, folder_values(location, path_of(file)).values(), strict=True)) for file in files
        }
        rows = reader(spark, location).options(**_OPTIONS).schema(columns).json(reader_paths(files))
        frame = with_folder_values(spark, rows, ORIGIN[FILE], names, values)
    else:
        frame, _ = load(spark, location, "json", columns, _OPTIONS, None if whole else list(map(path_of, files)))
    present = {name: sql.name(name) for name in wanted if name in own or name in in_folders}
    origin = {FILE: ORIGIN[FILE], START: ORIGIN[START], _BROKEN: broken_row(_BROKEN, columns.names[0])}
    folders = {folder: sql.name(folder) for folder in both.values()}
    types = dict.fromkeys(present, T.StringType())
    column_names = frozenset(keys or own).union(in_folders)
    return (
        Scan(
            frame,
            present | folders | origin,
            types,
            column_names,
            files,
            dict.fromkeys(present, ISO),
            quoted(_BROKEN),
            folders=both,
        ),
    )
