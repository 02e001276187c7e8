"""What a run records and checks about its inputs: their files, sizes and versions, and rows without a period."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain

import pyarrow as pa
from pyspark.sql import SparkSession

from tallybook.errors import ProblemError
from tallybook.model.columns import PERIOD
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.storage.fingerprints import is_same
from tallybook.storage.formats import Ability, Format, format_of
from tallybook.storage.formats.parquet_rows import are_never_blank, are_unique
from tallybook.storage.scan import Field, Scan, fields_of, quoted

_SMALL_BYTES = 4 * 2**20
"""The cost that Spark estimates for opening a file."""


def fingerprint(spark: SparkSession, location: Location) -> list[Json]:
    """Returns what every file of a location is recognised by; nothing if the format has no files to compare."""
    format = format_of(location)
    return format.fingerprint(spark, location) if Ability.FINGERPRINT in format.can else []


@contextmanager
def held(locations: Iterable[Location]) -> Iterator[dict[Location, Location]]:
    """Keeps the rows of locations as they are while the block reads them, where a format needs that.

    Returns the location to read instead of each one.
    """
    by_format: dict[Format, list[Location]] = {}
    for location in dict.fromkeys(locations):
        by_format.setdefault(format_of(location), []).append(location)
    result: dict[Location, Location] = {}
    with ExitStack() as stack:
        for format, of_format in by_format.items():
            result |= stack.enter_context(format.hold(of_format))
        yield {location: result.get(location, location) for of_format in by_format.values() for location in of_format}


def local_size(location: Location) -> int | None:
    """Returns the size in bytes of all files of a location; None if they are not files of this machine."""
    return format_of(location).local_size(location)


def are_small(locations: Iterable[Location]) -> bool:
    """True if one task can process all rows of the locations, so that grouping them needs no shuffle."""
    sizes = [local_size(location) for location in locations]
    return all(size is not None for size in sizes) and sum(filter(None, sizes)) <= _SMALL_BYTES


def current_version(location: Location) -> int | None:
    """Returns the newest version at a location, ABSENT if there is no table; None if the format keeps no versions."""
    format = format_of(location)
    return format.current_version(location) if Ability.VERSIONS in format.can else None


def changed_files(before: list[Json], now: list[Json]) -> list[str]:
    """Describes each difference between two states of the files of a location."""
    old, new = ({state["file"]: state for state in states} for states in (before, now))
    return [
        *(f"{file} is gone" for file in old if file not in new),
        *(f"{file} is new" for file in new if file not in old),
        *(f"{file} was changed" for file in old if file in new and not is_same(old[file], new[file])),
    ]


def rows_without_period(spark: SparkSession, locations: Sequence[Location], table: Table) -> int:
    """Returns how many rows of a table have a NULL or blank period; 0 if the data has no period column.

    Every run leaves such rows out, so a run warns of them. They are counted in a job of their own that reads one
    column, because counting them in the run's own job would keep Spark from skipping data. Statistics of local Parquet
    files usually show that there are no such rows; then Spark is not needed.
    """
    field = next(field for field in fields_of(table) if field.name == PERIOD)
    return sum(
        _count_blank(scan, field)
        for location in locations
        if _may_be_blank(location, field.physical)
        for scan in format_of(location).scan(spark, location, [field], 0)
        if field.physical in scan.types
    )


def _count_blank(scan: Scan, field: Field) -> int:
    period = quoted(field.physical)
    return scan.frame.select(period).where(period.isNull() | period.rlike(r"^\s*$")).count()


def _may_be_blank(location: Location, column: str) -> bool:
    format = format_of(location)
    try:
        known = format.column_names(location)
        is_absent = known is not None and column not in known
        return not is_absent and not are_never_blank(format.parquet_files(location), column)
    except (pa.ArrowException, OSError, ProblemError):
        return True


def have_unique_keys(locations: Sequence[Location], table: Table, keys: Sequence[str], periods: Sequence[str]) -> bool:
    """True if it is known without Spark that no two rows of the periods have the same values in these columns. Rows
    with a NULL among them may repeat. Nothing is known of system columns, which a run may fill in or replace."""
    physical = {column.name: column.physical for column in table.columns}
    if not physical.keys() >= set(keys):
        return False
    within = (table.period_column, periods) if table.temporal_mode == "period" else None
    try:
        files = [format_of(location).parquet_files(location) for location in locations]
        return all(files) and are_unique([*chain.from_iterable(files)], [physical[key] for key in keys], within)
    except (pa.ArrowException, OSError, ProblemError):
        return False
