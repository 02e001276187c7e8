"""A whole location, strictly: which files belong to it, the values in their folder names, and their rows in types."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import orc
from pyarrow import parquet as pq

from .case import Case, Column
from .strict_csv import records
from .strict_json import Nested, objects
from .strict_values import value_of, widened
from .verdict import NOTHING, MalformedError, Row, StrictReading

SYSTEM = {
    "_row_id": "string",
    "_source_dataset_id": "string",
    "_source_table": "string",
    "_operation_seq": "integer",
    "_created_at": "timestamp",
    "_updated_at": "timestamp",
    "_deleted": "boolean",
    "_labels": "string",
    "_period": "string",
}
"""The system columns that a file may have, with their types."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
DECOMPRESSION: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".deflate": zlib.decompress,
}
CASE_ONLY = "names that differ by case only"
Folder = Mapping[str, str | None]
"""Columns and values in the names of a file's folders."""


@dataclass(frozen=True)
class Sheet:
    """The columns of one file: their names, and how to get the values of the n-th one in a declared type."""

    names: Sequence[str]
    values: Callable[[int, str], Sequence[Any]]
    length: int


def strict(case: Case, root: Path) -> StrictReading:
    """What a strict reader finds at the location of a case that was written below `root`; raises MalformedError."""
    files = {root: {}} if case.format == "delta" else _files(case, root)
    sheets = _json_sheets(case, files) if case.format == "json" else {file: _sheet(case, file, files) for file in files}
    rows: list[Row] = []
    columns: set[str] = set()
    for file, folder in files.items():
        here = _asked_columns(case, sheets[file], folder)
        columns |= set(here)
        rows += [{name: here[name][index] for name in here} for index in range(sheets[file].length)]
    return StrictReading(rows, frozenset(columns), ordered=len(files) == 1 and case.format != "delta")


def _files(case: Case, root: Path) -> dict[Path, Folder]:
    """The files of a location, each with the columns and values in the names of its folders below the location.

    Each file or folder that a pattern matches is a location of its own.
    """
    location = root / case.target if case.target else root
    locations = [location] if location.exists() else sorted(root.glob(case.target))
    files = {
        file: _folder(file.relative_to(each).parts[:-1])
        for each in locations
        for file in ([each] if each.is_file() else sorted(each.rglob("*")))
        if file.is_file() and not any(map(_hidden, file.relative_to(root).parts))
    }
    if not files:
        raise MalformedError(NOTHING, "no files")
    if len({tuple(folder) for folder in files.values()}) > 1:
        raise MalformedError("DataLoadError", "folders of different depth or name")
    return files


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _folder(names: Sequence[str]) -> Folder:
    pairs = [name.partition("=") for name in names]
    if not all(equals for _, equals, _ in pairs):
        raise MalformedError("DataLoadError", "files in folders that are not named after values")
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs}


def _wanted(case: Case) -> list[Column]:
    return [*case.columns, *(Column(name, type, name) for name, type in SYSTEM.items())]


def _asked_columns(case: Case, sheet: Sheet, folder: Folder) -> dict[str, Sequence[Any]]:
    """The values of the columns that are asked for. Of the others the type counts, but not the values."""
    columns: dict[str, Sequence[Any]] = {}
    for column in _wanted(case):
        asked = case.asked is None or column.name in case.asked
        try:
            values = _column(case, sheet, column, folder)
        except MalformedError as error:
            if asked or error.type != "DataLoadError":
                raise
        else:
            columns |= {column.name: values} if asked and values is not None else {}
    return columns


def _column(case: Case, sheet: Sheet, column: Column, folder: Folder) -> Sequence[Any] | None:
    """The values of a column in a file; None for a system column that is not there."""
    name = column.physical
    alike = [other for other in (*sheet.names, *folder) if other != name and other.lower() == name.lower()]
    if name not in (*sheet.names, *folder):
        if column.name not in SYSTEM:
            raise MalformedError("SchemaMismatch", "a column is missing", name)
        if alike:
            raise MalformedError("SchemaMismatch", CASE_ONLY, alike)
        return None
    columnar = case.format not in ("csv", "json") and name in sheet.names
    if clash := [other for other in alike if columnar or any(other == each.physical for each in _wanted(case))]:
        raise MalformedError("SchemaMismatch", CASE_ONLY, [name, *clash])
    if sheet.names.count(name) > 1:
        raise MalformedError("SchemaMismatch", "a column is there twice", name)
    in_file = sheet.values(sheet.names.index(name), column.type) if name in sheet.names else None
    values = in_file if in_file is not None else []
    if name in folder:
        text = folder[name]
        values = [value_of(text, column.type) if text is not None else None for _ in range(sheet.length)]
        if in_file is not None and list(in_file) != values:
            raise MalformedError("DataLoadError", "a folder and a file that disagree", name)
    if not column.nullable and None in values:
        raise MalformedError("DataLoadError", "NULL in a column that must have values", name)
    return values


def _text(file: Path) -> str:
    """The characters of a file; bytes that are no UTF-8 become surrogates, which no value may have."""
    content = file.read_bytes()
    if decompress := DECOMPRESSION.get(file.suffix):
        try:
            content = decompress(content)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise MalformedError("DataLoadError", "not compressed as the name says", error) from None
    return content.decode("utf-8", errors="surrogateescape")


def _sheet(case: Case, file: Path, files: Mapping[Path, Folder]) -> Sheet:
    if case.format == "csv":
        return _csv_sheet(case, file, files[file])
    try:
        if case.format == "delta":
            table = DeltaTable(file).to_pyarrow_table()
        elif case.format == "orc":
            table = orc.ORCFile(file).read()
        else:
            table = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    except (pa.ArrowException, OSError) as error:
        raise MalformedError("DataLoadError", "a damaged file", error) from None

    def values(index: int, type: str) -> list[Any]:
        if case.format == "orc" and "`" in table.column_names[index]:
            raise MalformedError("SchemaMismatch", "a column of ORC with ` in its name, which Spark loses")
        return widened(table.column(index), type, case.format)

    return Sheet(table.column_names, values, table.num_rows)


def _csv_sheet(case: Case, file: Path, folder: Folder) -> Sheet:
    lines = records(_text(file), case.options.get("delimiter", ","))
    null = case.options.get("null_value", "")
    if case.options.get("has_header", True):
        header = lines.pop(0) if lines else []
        names = [name or f"_c{index}" for index, name in enumerate(header)]
    else:
        names = [column.physical for column in case.columns if column.physical not in folder]
    wrong = next((line for line in lines if len(line) != len(names)), None)
    error = MalformedError("DataLoadError", "a row with another number of fields", wrong)
    if wrong is not None and case.asked != ():  # Spark parses no row to count them
        raise error

    def values(index: int, type: str) -> list[Any]:
        if wrong is not None:
            raise error
        return [None if line[index] == null else value_of(line[index], type) for line in lines]

    return Sheet(names, values, len(lines))


def _json_sheets(case: Case, files: Mapping[Path, Folder]) -> dict[Path, Sheet]:
    """JSON names its columns row by row, so all files of a location have the same columns."""
    rows = {file: objects(_text(file)) for file in files}
    every = [row for of_file in rows.values() for row in of_file]
    wanted = [column.physical for column in _wanted(case)]
    keys = sorted({key for row in every for key in row} if every else {*wanted})
    present = {*(name for name in wanted if name in keys), *next(iter(files.values()))}
    if len({name.lower() for name in present}) < len(present):
        raise MalformedError("SchemaMismatch", CASE_ONLY, present)
    for name in set(wanted) & set(keys):
        if any(name not in row and name.lower() in map(str.lower, row) for row in every):
            raise MalformedError("DataLoadError", CASE_ONLY, name)
    return {file: _json_sheet(keys, of_file) for file, of_file in rows.items()}


def _json_sheet(keys: Sequence[str], rows: Sequence[Row]) -> Sheet:
    return Sheet(keys, lambda index, type: [_json_value(row.get(keys[index]), type) for row in rows], len(rows))


def _json_value(cell: Any, type: str) -> Any:
    if isinstance(cell, Nested) and type != "string":
        raise MalformedError("DataLoadError", "an object or list in a column of another type", cell)
    return cell if cell is None or isinstance(cell, Nested) else value_of(cell, type)
