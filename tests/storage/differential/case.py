"""A case: files of one location, and the table that is read from them. It can be written to disk and printed."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import orc
from pyarrow import parquet as pq

COMPRESSION: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".deflate": zlib.compress,
}


@dataclass(frozen=True)
class Column:
    """A declared column; `physical` is its name in the data."""

    name: str
    type: str
    physical: str
    nullable: bool = True


@dataclass(frozen=True)
class TextFile:
    """A file given by its bytes, compressed as the end of its name says unless `compressed` is false."""

    path: str
    content: bytes
    compressed: bool = True

    def write(self, path: Path) -> None:
        compress = COMPRESSION.get(path.suffix) if self.compressed else None
        path.write_bytes(compress(self.content) if compress else self.content)


@dataclass(frozen=True)
class ArrowFile:
    """A Parquet or ORC file given by its columns: name, Arrow type and values."""

    path: str
    format: str
    columns: tuple[tuple[str, pa.DataType, tuple[Any, ...]], ...]
    options: tuple[tuple[str, Any], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    """The bytes that are left of the file, where it was copied only in part; negative ones count from its end."""

    @property
    def table(self) -> pa.Table:
        arrays = [pa.array(values, type) for _, type, values in self.columns]
        schema = pa.schema([pa.field(name, type) for name, type, _ in self.columns])
        return pa.Table.from_arrays(arrays, schema=schema.with_metadata(dict(self.metadata)))

    def write(self, path: Path) -> None:
        if self.format == "parquet":
            pq.write_table(self.table, path, **dict(self.options))
        else:
            orc.write_table(self.table, path, **dict(self.options))
        if self.cut is not None:
            path.write_bytes(path.read_bytes()[: self.cut])


@dataclass(frozen=True)
class DeltaWrite:
    """Commits to a Delta table: rows that are added or replace all others, then maybe a delete and a checkpoint."""

    columns: tuple[tuple[str, pa.DataType, tuple[Any, ...]], ...]
    partition_by: tuple[str, ...] = ()
    mode: Literal["append", "overwrite"] = "append"
    delete: str | None = None
    """A column: rows in which it is NULL are deleted."""
    checkpoint: bool = False
    path: str = ""

    def write(self, path: Path) -> None:
        rows = ArrowFile("", "delta", self.columns).table
        schema_mode: Literal["merge", "overwrite"] = "merge" if self.mode == "append" else "overwrite"
        write_deltalake(
            path, rows, mode=self.mode, partition_by=list(self.partition_by) or None, schema_mode=schema_mode
        )
        table = DeltaTable(path)
        if self.delete is not None:
            table.delete(f"`{self.delete}` IS NULL")
        if self.checkpoint:
            table.create_checkpoint()


@dataclass(frozen=True)
class Case:
    """Files below one folder; `target` is what the location names: that folder, a file or a pattern in it."""

    format: str
    files: tuple[TextFile | ArrowFile | DeltaWrite, ...]
    columns: tuple[Column, ...]
    target: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The csv options of the datasource."""
    asked: tuple[str, ...] | None = None
    """The columns that are read of the table: all and their system columns where it is None, with () only the count."""

    def write(self, root: Path) -> Path:
        """Write the files; returns the path of the location."""
        root.mkdir(parents=True, exist_ok=True)
        for file in self.files:
            path = root / file.path if file.path else root
            path.parent.mkdir(parents=True, exist_ok=True)
            file.write(path)
        return root / self.target if self.target else root
