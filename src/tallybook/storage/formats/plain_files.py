"""What the formats of plain files share: an output is staged next to its target, then published in one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.resolve.overlap import Area, areas_read
from tallybook.storage.credentials import reader
from tallybook.storage.file_writer import check_files, write_files
from tallybook.storage.files import list_files, path_of, reader_path, reader_paths
from tallybook.storage.folders import local_files, visible
from tallybook.storage.formats.base import Ability, Format
from tallybook.storage.output import Output
from tallybook.storage.scan import Scan, local_path
from tallybook.storage.stage import StagedFile, Written, count_staged_files

Options = Mapping[str, str | bool]
EXACT_PATH: Options = {
    "spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
}
"""Makes Spark hand the committer its path. Otherwise the path goes through a setting of Hadoop's, where `${...}` is
replaced: the folder would be named after an environment variable. Spark does so for Parquet by itself."""
TEXT_OPTIONS: Options = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timeZone": "UTC",
    "encoding": "UTF-8",
}
"""How Spark writes text: a timestamp keeps its microseconds, which Spark cuts unless told."""


class PlainFiles(Format):
    """A format of files that are read and replaced as a whole. Its `type` is Spark's name of the format, too."""

    can = frozenset({Ability.SCAN, Ability.WRITE, Ability.FINGERPRINT})

    names_columns: ClassVar[bool] = False
    """True if every row names its columns, so that rows with other columns can be added."""
    inexact: ClassVar[str] = "such a file"
    """How a message names files that cannot hold a value."""
    inexact_hint: ClassVar[str] = "write Parquet or Delta instead"

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        """The rows in the form that Spark writes without changing a value."""
        return frame

    def write_options(self, location: Location) -> Options:
        """Options of Spark's writer, with which other readers see the same values."""
        return EXACT_PATH

    def read_options(self, location: Location) -> Options:
        """Options of Spark's reader for files that an output has written."""
        return {}

    def staged_files(
        self, spark: SparkSession, frame: DataFrame, location: Location, path: str
    ) -> tuple[StagedFile, ...]:
        """The files of a staged folder that have rows."""
        return count_staged_files(self, spark, frame, location, path)

    def same_columns(self, location: Location, there: T.StructType, here: T.StructType) -> bool:
        """True if rows can be added to files; their columns are `there`, those of the rows `here`."""
        return {f.name: f.dataType for f in there.fields} == {f.name: f.dataType for f in here.fields}

    def check_destination(self, location: Location, output: Output) -> None:
        check_files(location, output)

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        return write_files(self, spark, frame, location, output)

    def written_by(self, location: Location, output: Output) -> Location:
        """The files of the folder whose names carry the output's name."""
        return replace(location, target=f"{location.target.rstrip('/')}/{output.name}-*")

    def has_written(self, location: Location, output: Output) -> bool | None:
        local = local_path(location)
        return None if local is None else any(file.name.startswith(f"{output.name}-") for file in Path(local).iterdir())

    def fingerprint(self, spark: SparkSession, location: Location) -> list[Json]:
        return _file_states(spark, location)

    def local_size(self, location: Location) -> int | None:
        return _local_size(location)

    def areas_read(self, location: Location) -> Iterable[Area]:
        return areas_read(reader_path(location))

    def where(self, location: Location, scan: Scan) -> str:
        """One file, because the files of a scan have the same columns."""
        return path_of(scan.files[0]) if scan.files else str(location)


def _file_states(spark: SparkSession, location: Location) -> list[Json]:
    """Name, size and time of every file of a location, sorted by name."""
    local = local_files(location)
    if local is not None:
        return list(filter(None, map(_state, local)))
    files = visible(location, list_files(reader(spark, location), reader_path(location)))
    if not files:
        return []
    listed = reader(spark, location).format("binaryFile").load(reader_paths(files))
    states = listed.selectExpr("path", "length", "unix_micros(modificationTime) / 1000000 AS modified").orderBy("path")
    return [
        {"file": row["path"], "size": row["length"], "modified": _time(row["modified"])} for row in states.collect()
    ]


def _local_size(location: Location) -> int | None:
    """The bytes of all files of a location; None if they are not on this machine, or the location is a pattern."""
    local = local_files(location)
    return None if local is None else sum(state["size"] for state in filter(None, map(_state, local)))


def _state(file: Path) -> Json | None:
    """The state of a file; None if it has gone since it was listed."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return {"file": str(file), "size": status.st_size, "modified": _time(status.st_mtime)}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
