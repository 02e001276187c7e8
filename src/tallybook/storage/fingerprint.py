"""What the inputs of a run looked like, so that a replay can say which of them changed underneath."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.storage.credentials import reader
from tallybook.storage.files import as_paths, as_pattern, list_files
from tallybook.storage.folders import local_files, visible


def fingerprint(spark: SparkSession, location: Location) -> list[Json]:
    """Name, size and time of every file of a place; nothing for Delta versions and tables, which name their state."""
    if not _has_files(location):
        return []
    here = local_files(location)
    if here is not None:
        return list(filter(None, map(_of_file, here)))
    files = visible(location, list_files(reader(spark, location), as_pattern(location)))
    if not files:
        return []
    listed = reader(spark, location).format("binaryFile").load(as_paths(files))
    facts = listed.selectExpr("path", "length", "unix_micros(modificationTime) / 1000000 AS modified").orderBy("path")
    return [{"file": row["path"], "size": row["length"], "modified": _time(row["modified"])} for row in facts.collect()]


def size_here(location: Location) -> int | None:
    """The bytes of all files of a place; None where they are not plain files of this machine."""
    here = local_files(location) if _has_files(location) else None
    return None if here is None else sum(facts["size"] for facts in filter(None, map(_of_file, here)))


def _has_files(location: Location) -> bool:
    return location.source.type not in ("delta", "spark_catalog", "database")


def _of_file(file: Path) -> Json | None:
    """None if the file has gone since it was listed."""
    try:
        facts = file.stat()
    except FileNotFoundError:
        return None
    return {"file": str(file), "size": facts.st_size, "modified": _time(facts.st_mtime)}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def changed_files(before: list[Json], now: list[Json]) -> list[str]:
    """What is different about a place, in words."""
    old, new = ({each["file"]: each for each in listed} for listed in (before, now))
    return [
        *(f"{file} is gone" for file in old if file not in new),
        *(f"{file} is new" for file in new if file not in old),
        *(f"{file} was changed" for file in old if file in new and old[file] != new[file]),
    ]
