"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tallybook.model.location import Location
from tallybook.storage.folders import folder_values, local_files, own_folder_values
from tallybook.storage.formats.base import register
from tallybook.storage.formats.column_reading import FileReading
from tallybook.storage.formats.columnar import ColumnarFiles, OpenedFiles
from tallybook.storage.formats.parquet_footer import SIGNATURE, parquet_reading
from tallybook.storage.formats.parquet_rows import names_in_footer
from tallybook.storage.formats.plain_files import Options
from tallybook.storage.partitions import files_in_partitions
from tallybook.storage.scan import ORIGIN, positioned
from tallybook.storage.stage import StagedFile, staged_file


class Parquet(ColumnarFiles):
    """Parquet: rows have an index in their file, so positions are the same on every read."""

    type = "parquet"
    signature = SIGNATURE
    remote_options = (("datetimeRebaseMode", "EXCEPTION"), ("int96RebaseMode", "EXCEPTION"))
    """With them Spark refuses old dates if the footer does not state their calendar."""

    def local_reading(self, path: str, wanted: Iterable[str]) -> FileReading:
        return parquet_reading(path, wanted)

    def located(
        self, spark: SparkSession, opened: OpenedFiles, values: dict[str, str], ordinals: Mapping[str, int]
    ) -> tuple[DataFrame, dict[str, str]]:
        of_files = {file: ordinals[file] for file in opened.files}
        return positioned(spark, opened.frame, values | ORIGIN, of_files)

    def write_options(self, location: Location) -> Options:
        """Returns options that write timestamps as microseconds in UTC, not as INT96."""
        return {
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.sql.parquet.writeLegacyFormat": "false",
        }

    def staged_files(
        self, spark: SparkSession, frame: DataFrame, location: Location, path: str
    ) -> tuple[StagedFile, ...]:
        """Counts rows in the footers if this process can read the folder and it has rows, otherwise with Spark."""
        folder = Path(path.removeprefix("file:"))
        files = [file for file in files_in_partitions(folder) if fnmatch(file.name, "[!._]*.parquet")]
        rows_of = ((file, pq.read_metadata(file).num_rows) for file in files)
        counted = tuple(
            staged_file(str(folder), str(file), file.stat().st_size, rows) for file, rows in rows_of if rows
        )
        return counted or super().staged_files(spark, frame, location, path)

    def column_names(self, location: Location) -> frozenset[str] | None:
        files = self.parquet_files(location)
        in_folders = [own_folder_values(location), *(folder_values(location, file) for file in files)]
        return frozenset().union(*in_folders, *map(names_in_footer, files)) if files else None

    def parquet_files(self, location: Location) -> Sequence[str]:
        return list(map(str, local_files(location) or ()))


PARQUET = register(Parquet())
