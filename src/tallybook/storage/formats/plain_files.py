"""The base of the formats of plain files: an output is staged next to its target, then published in one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.resolve.overlap import Area, areas_read
from tallybook.storage.credentials import reader
from tallybook.storage.file_writer import check_files, write_files
from tallybook.storage.files import escape_pattern, list_files, path_of, reader_path, reader_paths
from tallybook.storage.fingerprints import file_state, time_text
from tallybook.storage.folders import local_files, visible
from tallybook.storage.formats.base import Ability, Format
from tallybook.storage.output import Output, foreign_files
from tallybook.storage.partitions import files_in_partitions
from tallybook.storage.probe import data_files
from tallybook.storage.scan import Scan
from tallybook.storage.stage import StagedFile, Written, count_staged_files

Options = Mapping[str, str | bool]
EXACT_PATH: Options = {
    "spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
}
"""Makes Spark pass the path to the committer directly. Otherwise it passes the path in a setting of Hadoop, which
replaces `${...}`, so that the folder would be named after an environment variable. For Parquet, Spark does so by
itself."""
TEXT_OPTIONS: Options = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timeZone": "UTC",
    "encoding": "UTF-8",
}
"""Options for text formats. Timestamps keep their microseconds, which Spark cuts by default."""


class PlainFiles(Format):
    """A format of files that are read and replaced as a whole. Its `type` is also Spark's name of the format."""

    can = frozenset({Ability.SCAN, Ability.WRITE, Ability.FINGERPRINT})

    names_columns: ClassVar[bool] = False
    """True if every row has the names of its columns, so that rows with other columns can be added."""
    inexact: ClassVar[str] = "such a file"
    """The name of the format in a message about a value that it cannot hold."""
    inexact_hint: ClassVar[str] = "write Parquet or Delta instead"

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        """Returns the rows in a form that Spark writes without changing a value."""
        return frame

    def write_options(self, location: Location) -> Options:
        """Returns options of Spark's writer, with which other readers read the same values."""
        return EXACT_PATH

    def read_options(self, location: Location) -> Options:
        """Returns options of Spark's reader for files that it has just written."""
        return {}

    def staged_files(
        self, spark: SparkSession, frame: DataFrame, location: Location, path: str
    ) -> tuple[StagedFile, ...]:
        """Returns the files of a staged folder that have rows."""
        return count_staged_files(self, spark, frame, location, path)

    def save(
        self,
        spark: SparkSession,
        frame: DataFrame,
        ready: DataFrame,
        location: Location,
        path: str,
        options: Options,
        partition_by: Sequence[str],
    ) -> tuple[StagedFile, ...]:
        """Writes rows that are `prepared` into a new folder. Returns the files that have rows."""
        ready.write.format(self.type).options(**options).partitionBy(*partition_by).save(path)
        return self.staged_files(spark, frame, location, path)

    def finish_file(self, file: Path, location: Location) -> None:
        """Changes a staged file into what readers get. Spark has counted its rows before."""

    def existing_columns(self, spark: SparkSession, location: Location, target: str) -> T.StructType:
        """Returns the columns of the files in a folder."""
        return spark.read.format(self.type).options(**self.read_options(location)).load(escape_pattern(target)).schema

    def same_columns(self, location: Location, existing: T.StructType, new: T.StructType) -> bool:
        """True if rows with the columns `new` can be added to files with the columns `existing`."""
        return {f.name: f.dataType for f in existing.fields} == {f.name: f.dataType for f in new.fields}

    def probe(self, location: Location) -> list[str]:
        return data_files(location)

    def owned_files(self, location: Location) -> tuple[Path, ...]:
        target = Path(location.local_path or "")
        if location.local_path is None or target.is_symlink():
            return ()
        if target.is_file():
            return (target,) if location.source.is_one_file(target.name) else ()
        return () if foreign_files(target) else tuple(files_in_partitions(target))

    def check_destination(self, location: Location, output: Output) -> None:
        check_files(location, output)

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        return write_files(self, spark, frame, location, output)

    def written_by(self, location: Location, output: Output) -> Location:
        """Returns the location of the files whose names begin with the output's name. It is a pattern, so the columns
        in folder names are not read."""
        folders = "*/" * len(output.partition_by)
        return replace(location, target=f"{location.target.rstrip('/')}/{folders}{output.name}-*")

    def has_written(self, location: Location, output: Output) -> bool | None:
        local = location.local_path
        if local is None:
            return None
        return any(file.name.startswith(f"{output.name}-") for file in files_in_partitions(Path(local)))

    def fingerprint(self, spark: SparkSession, location: Location) -> list[Json]:
        return _file_states(spark, location)

    def local_size(self, location: Location) -> int | None:
        return _local_size(location)

    def areas_read(self, location: Location) -> Iterable[Area]:
        return areas_read(reader_path(location))

    def where(self, location: Location, scan: Scan) -> str:
        """Returns one file, because the files of a scan have the same columns."""
        return path_of(scan.files[0]) if scan.files else str(location)


def _file_states(spark: SparkSession, location: Location) -> list[Json]:
    """Returns what every file of a location is recognised by, sorted by name."""
    local = local_files(location)
    if local is not None:
        return list(filter(None, map(file_state, local)))
    files = visible(location, list_files(reader(spark, location), reader_path(location)))
    if not files:
        return []
    listed = reader(spark, location).format("binaryFile").load(reader_paths(files))
    states = listed.selectExpr("path", "length", "unix_micros(modificationTime) / 1000000 AS modified").orderBy("path")
    return [
        {"file": row["path"], "size": row["length"], "modified": time_text(row["modified"])} for row in states.collect()
    ]


def _local_size(location: Location) -> int | None:
    """Returns the size in bytes of all files of a location; None if it is a pattern or not on this machine."""
    local = local_files(location)
    return None if local is None else sum(map(_size, local))


def _size(file: Path) -> int:
    """Returns the size of a file; 0 if it was removed after it was listed."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
