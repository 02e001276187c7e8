"""Compares the rows that several ways have written. DuckDB reads the files, which takes a moment for a million rows.

Numbers are compared by value: programs differ in the digits that they give a sum. All other types must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
from deltalake import DeltaTable

NOT_COMPARED = {"_row_id", "_created_at", "_updated_at"}
"""Every way makes its own ids and times. The columns must exist with the same type."""

WHOLE_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}


class DisagreementError(Exception):
    """Two ways have written different rows."""


def check_same_rows(outputs: Mapping[str, Sequence[Path]]) -> None:
    """Raises DisagreementError if a way has written other columns, types or rows than the first, in any order.

    Ways without outputs are left out.
    """
    written = {name: folders for name, folders in outputs.items() if folders}
    if not written:
        return
    (first, expected), *others = written.items()
    for name, folders in others:
        for mine, theirs in zip(expected, folders, strict=True):
            _check(first, mine, name, theirs)


def parquet_files(folder: Path) -> list[str]:
    """Returns the current files of a Delta table, or all Parquet files of a folder, or the file itself."""
    if (folder / "_delta_log").exists():
        return sorted(DeltaTable(str(folder)).file_uris())
    return sorted(map(str, folder.rglob("*.parquet"))) if folder.is_dir() else [str(folder)]


def _check(first: str, mine: Path, other: str, theirs: Path) -> None:
    with duckdb.connect() as connection:
        for view, folder in (("mine", mine), ("theirs", theirs)):
            files = parquet_files(folder)
            if not files:
                raise DisagreementError(f"{first if view == 'mine' else other} has written no file to {folder}")
            connection.from_parquet(files).create_view(view)
        left, right = _schema(connection, "mine"), _schema(connection, "theirs")
        types = [_common_type(left[name], right[name]) for name in left if name in right]
        if list(left) != list(right) or None in types:
            raise DisagreementError(f"{mine.name}: {first} has the columns {left}, {other} has {right}")
        compared = {name: type for name, type in zip(left, types, strict=True) if name not in NOT_COMPARED}
        cells = ", ".join(f'"{name}"::{type}' for name, type in compared.items())
        if _fingerprint(connection, "mine", cells) != _fingerprint(connection, "theirs", cells):
            only = [_difference(connection, cells, *views) for views in (("mine", "theirs"), ("theirs", "mine"))]
            raise DisagreementError(f"{mine.name}: only {first} has {only[0]}; only {other} has {only[1]}")


def _schema(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    return {name: type for name, type, *_ in connection.execute(f"DESCRIBE {view}").fetchall()}


def _common_type(left: str, right: str) -> str | None:
    """Returns the type in which two columns are compared; None if they cannot be."""
    if left == right:
        return left
    scales = [_scale(type) for type in (left, right)]
    return None if None in scales else f"DECIMAL(38,{max(scale or 0 for scale in scales)})"


def _scale(type: str) -> int | None:
    """Returns the fractional digits of a type of numbers; None for any other type."""
    if type in WHOLE_NUMBERS:
        return 0
    decimal = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", type)
    return int(decimal[1]) if decimal else None


def _fingerprint(connection: duckdb.DuckDBPyConnection, view: str, cells: str) -> object:
    """Returns the number of rows and the sum of their hashes: equal for the same rows in any order."""
    return connection.execute(f"SELECT count(*), sum(hash(row({cells}))::HUGEINT) FROM {view}").fetchone()


def _difference(connection: duckdb.DuckDBPyConnection, cells: str, view: str, other: str) -> object:
    query = f"SELECT {cells} FROM {view} EXCEPT ALL SELECT {cells} FROM {other} LIMIT 3"
    return connection.execute(query).fetchall()
