"""What the inputs of a run looked like, so that a replay can say which of them changed underneath."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.storage.formats import Ability, format_of


def fingerprint(spark: SparkSession, location: Location) -> list[Json]:
    """Name, size and time of every file of a location; nothing for formats whose state is not that of files."""
    format = format_of(location)
    return format.fingerprint(spark, location) if Ability.FINGERPRINT in format.can else []


def local_size(location: Location) -> int | None:
    """The bytes of all files of a location; None if they are not plain files of this machine."""
    format = format_of(location)
    return format.local_size(location) if Ability.FINGERPRINT in format.can else None


def current_version(location: Location) -> int | None:
    """The version that a location is at, ABSENT if there is nothing; None for formats that keep no versions."""
    format = format_of(location)
    return format.current_version(location) if Ability.VERSIONS in format.can else None


def changed_files(before: list[Json], now: list[Json]) -> list[str]:
    """What is different about the files of a location, in words."""
    old, new = ({state["file"]: state for state in states} for states in (before, now))
    return [
        *(f"{file} is gone" for file in old if file not in new),
        *(f"{file} is new" for file in new if file not in old),
        *(f"{file} was changed" for file in old if file in new and old[file] != new[file]),
    ]
