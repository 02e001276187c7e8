"""Name, size and time of the files of a location."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.storage.credentials import reader
from tallybook.storage.files import as_paths, as_pattern, list_files
from tallybook.storage.folders import local_files, visible


def file_states(spark: SparkSession, location: Location) -> list[Json]:
    """Name, size and time of every file of a location, sorted by name."""
    local = local_files(location)
    if local is not None:
        return list(filter(None, map(_state, local)))
    files = visible(location, list_files(reader(spark, location), as_pattern(location)))
    if not files:
        return []
    listed = reader(spark, location).format("binaryFile").load(as_paths(files))
    states = listed.selectExpr("path", "length", "unix_micros(modificationTime) / 1000000 AS modified").orderBy("path")
    return [
        {"file": row["path"], "size": row["length"], "modified": _time(row["modified"])} for row in states.collect()
    ]


def local_size(location: Location) -> int | None:
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
