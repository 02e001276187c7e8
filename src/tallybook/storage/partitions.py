"""Folders named after values, such as `region=EMEA/month=01`, in which an output with `partition_by` puts its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tallybook.rows import sql
from tallybook.rows.raising import raising_sql

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of a folder that means NULL."""
UNNAMABLE = "partition"
"""The reason in the error of a value that the name of a folder cannot hold."""


def column_of(folder: str) -> str | None:
    """Returns the column in the name of a folder such as `month=01`; None if it has none."""
    name, equals, _ = folder.partition("=")
    return unquote(name) if name and equals else None


def values_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Returns the columns in the names of folders with their values. Folders of other names are left out."""
    named = (folder.partition("=") for folder in folders if column_of(folder))
    return {unquote(name): None if value == NULL_FOLDER else unquote(value) for name, _, value in named}


def is_partition(entry: Path) -> bool:
    """True if the entry is a folder named after a value."""
    return column_of(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def files_in_partitions(folder: Path) -> list[Path]:
    """Returns the entries of a folder and of the folders below it that are named after values; not these folders."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [file for entry in entries for file in (files_in_partitions(entry) if is_partition(entry) else [entry])]


def raise_unnamable(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns the frame; the job fails on a text that the name of a folder cannot hold, because readers would take it
    for NULL."""
    values = {name: sql.name(name) for name in frame.columns}
    for name in columns:
        if isinstance(frame.schema[name].dataType, T.StringType):
            value = sql.name(name)
            details = {"column": sql.text(name), "value": value, "reason": sql.text(UNNAMABLE)}
            failure = raising_sql("WriteFailed", **details)
            values[name] = f"CASE WHEN {value} IN ('', '{NULL_FOLDER}') THEN {failure} ELSE {value} END"
    return sql.select(frame, values)
