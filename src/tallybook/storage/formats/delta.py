"""Delta tables, read and written without a jar: delta-rs handles the log, Spark the Parquet files in it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tallybook.model.location import ABSENT, Location
from tallybook.resolve.overlap import Area, area
from tallybook.storage.formats.base import Ability, Format, register
from tallybook.storage.formats.delta_cleanup import unneeded_files
from tallybook.storage.formats.delta_commit import check_folder, write_delta
from tallybook.storage.formats.delta_table import open_table, scan_delta, table_files, table_root
from tallybook.storage.formats.parquet import PARQUET
from tallybook.storage.output import Output, foreign_to_delta
from tallybook.storage.probe import delta_tables
from tallybook.storage.scan import Field, Scan
from tallybook.storage.stage import Written


class Delta(Format):
    """Delta: a table keeps its versions, so a version identifies the rows."""

    type = "delta"
    can = frozenset({Ability.SCAN, Ability.WRITE, Ability.REPLACE_PERIOD, Ability.VERSIONS})
    signature = PARQUET.signature
    expands_names = True

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        return scan_delta(spark, location, fields, first)

    def check_destination(self, location: Location, output: Output) -> None:
        check_folder(location)

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        return write_delta(spark, frame, location, output)

    def written_by(self, location: Location, output: Output) -> Location:
        """Returns the location of the Parquet files in the folder of the output."""
        files = location.source.model_copy(update={"type": PARQUET.type})
        target = f"{table_root(location)}/{output.name}/*"
        return replace(location, source=files, target=target, version=None)

    def has_written(self, location: Location, output: Output) -> bool | None:
        table = open_table(replace(location, version=None))
        return table is not None and (table.transaction_version(output.run_id) or 0) >= output.seq

    def current_version(self, location: Location) -> int:
        table = open_table(location)
        return ABSENT if table is None else table.version()

    def probe(self, location: Location) -> list[str]:
        return delta_tables(location)

    def local_size(self, location: Location) -> int | None:
        table = open_table(location) if location.local_path is not None else None
        return None if table is None else sum(pa.table(table.get_add_actions())["size_bytes"].to_pylist())

    def owned_files(self, location: Location) -> tuple[Path, ...]:
        """Returns all files of a table, its log included, if outputs have made every entry of its folder."""
        root = Path(table_root(location))
        if location.local_path is None or not root.is_dir() or foreign_to_delta(root):
            return ()
        return tuple(Path(path, name) for path, _, names in os.walk(root) for name in sorted(names))

    def unneeded_files(
        self, location: Location, versions: Collection[int], before: datetime, runs: Collection[str]
    ) -> tuple[Path, ...]:
        return unneeded_files(location, versions, before, runs) if location.local_path is not None else ()

    def areas_read(self, location: Location) -> Iterable[Area]:
        return [area(location.target)]

    def column_names(self, location: Location) -> frozenset[str] | None:
        table = open_table(location) if location.local_path is not None else None
        return None if table is None else frozenset(field.name for field in table.schema().fields)

    def parquet_files(self, location: Location) -> Sequence[str]:
        table = open_table(location) if location.local_path is not None else None
        return () if table is None else [file.absolute(location) for file in table_files(location, table)]


DELTA = register(Delta())
