"""Compares the rows that several ways have written. DuckDB reads the files, which takes a moment for a million rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
from deltalake import DeltaTable

NOT_COMPARED = {"_row_id", "_created_at", "_updated_at"}
"""Every way makes its own ids and times. The columns must exist with the same type."""


class DisagreementError(Exception):
    """Two ways have written different rows."""


def check_same_rows(outputs: Mapping[str, Sequence[Path]]) -> None:
    """Raises DisagreementError if a way has written other columns, types or rows than the first, in any order."""
    (first, expected), *others = outputs.items()
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
        columns, types = _schema(connection, "mine"), _schema(connection, "theirs")
        if columns != types:
            raise DisagreementError(
                f"{mine.name}: {first} and {other} differ in {set(columns) ^ set(types) or 'order'}"
            )
        names = ", ".join(f'"{name}"' for name, _ in columns if name not in NOT_COMPARED)
        if _fingerprint(connection, "mine", names) != _fingerprint(connection, "theirs", names):
            only = [_difference(connection, names, *views) for views in (("mine", "theirs"), ("theirs", "mine"))]
            raise DisagreementError(f"{mine.name}: only {first} has {only[0]}; only {other} has {only[1]}")


def _schema(connection: duckdb.DuckDBPyConnection, view: str) -> list[tuple[str, str]]:
    return [(name, type) for name, type, *_ in connection.execute(f"DESCRIBE {view}").fetchall()]


def _fingerprint(connection: duckdb.DuckDBPyConnection, view: str, names: str) -> object:
    """Returns the number of rows and the sum of their hashes: equal for the same rows in any order."""
    return connection.execute(f"SELECT count(*), sum(hash(row({names}))::HUGEINT) FROM {view}").fetchone()


def _difference(connection: duckdb.DuckDBPyConnection, names: str, view: str, other: str) -> object:
    query = f"SELECT {names} FROM {view} EXCEPT ALL SELECT {names} FROM {other} LIMIT 3"
    return connection.execute(query).fetchall()
