"""Finds the files of a Delta table that have rows of certain periods, and the other rows of these files.

The values of partitions, or the statistics in the log, usually say which periods a file has. Where they do not, Spark
reads the one column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.formats.delta_table import TableFile, open_files, table_files, table_schema
from tallybook.storage.scan import FILE, NAME

_EXACT = 32
"""Some writers cut texts of this length or longer in the statistics of a file."""
_NOT_ENCODED = "/!$&'()+,:;=@~"
"""What delta-rs leaves as it is in a path, beside letters, digits and `_.-`."""


@dataclass(frozen=True)
class PeriodRange:
    """What is known of the periods in a file without reading its rows."""

    least: str | None = None
    greatest: str | None = None
    nulls: int | None = None
    """The number of rows without a period; None if it is not known."""

    @property
    def only(self) -> str | None:
        """The one period of all rows; None if there are several, or it is not known."""
        exact = self.least is not None and len(self.least) < _EXACT
        return self.least if exact and self.least == self.greatest and self.nulls == 0 else None

    def may_have(self, periods: Iterable[str]) -> bool:
        """False if no row can be of one of the periods."""
        if self.least is None or self.greatest is None:
            return True
        return any(self.least <= period <= self.greatest for period in periods)

    def statistics(self, column: str) -> dict[str, Any]:
        """Returns what the log keeps about the column."""
        if self.least is None or self.nulls is None:
            return {}
        return {
            "minValues": {column: self.least},
            "maxValues": {column: self.greatest},
            "nullCount": {column: self.nulls},
        }


@dataclass(frozen=True)
class FilesOfPeriods:
    """The files of a table that have rows of certain periods."""

    whole: tuple[TableFile, ...] = ()
    """Files that have no other rows."""
    mixed: tuple[TableFile, ...] = ()
    """Files that have other rows, too."""

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in (*self.whole, *self.mixed))


def files_of_periods(
    spark: SparkSession, location: Location, table: DeltaTable, column: str, periods: Collection[str]
) -> FilesOfPeriods:
    """Returns the files of a table that have rows of the periods. `column` has the period of a row."""
    files = table_files(location, table)
    ranges = {file.path: _range_in_log(file, column) for file in files}
    candidates = [file for file in files if ranges[file.path].may_have(periods)]
    unknown = [file for file in candidates if ranges[file.path].only is None]
    read = _periods_in_files(spark, location, table, unknown, column) if unknown else {}
    wanted = set(periods)
    whole: list[TableFile] = []
    mixed: list[TableFile] = []
    for file in candidates:
        present = read.get(file.path, {ranges[file.path].only})
        if present & wanted:
            _refuse_other_encoding(location, file)
            (whole if present <= wanted else mixed).append(file)
    return FilesOfPeriods(tuple(whole), tuple(mixed))


def other_rows(
    spark: SparkSession,
    location: Location,
    table: DeltaTable,
    files: Sequence[TableFile],
    column: str,
    periods: Iterable[str],
) -> DataFrame:
    """Returns the rows of files that are of none of the periods, with the columns of the table."""
    rows = open_files(spark, location, table, files).frame
    names, period = ", ".join(map(sql.text, periods)), sql.name(column)
    others = rows.filter(f"{period} IS NULL OR {period} NOT IN ({names})")
    types = {field.name: field.dataType for field in table_schema(table).fields}
    return others.select(*(others[sql.name(name)].cast(type).alias(name) for name, type in types.items()))


def range_in_footer(path: Path, column: str) -> PeriodRange:
    """Returns what the footer of a Parquet file says about the periods of its rows."""
    metadata = pq.read_metadata(path)
    index = metadata.schema.names.index(column)
    groups = [metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups)]
    if any(group is None or not group.has_null_count for group in groups):
        return PeriodRange()
    nulls = sum(group.null_count for group in groups)
    with_values = [group for group in groups if group.num_values]
    if not with_values or not all(group.has_min_max for group in with_values):
        return PeriodRange(nulls=nulls)
    return PeriodRange(min(group.min for group in with_values), max(group.max for group in with_values), nulls)


def range_in_partition(value: str | None) -> PeriodRange:
    """Returns the range of a file in a partition by period. NULL is an empty text in it: no period has such a name."""
    return PeriodRange(value or "", value or "", 0)


def _range_in_log(file: TableFile, column: str) -> PeriodRange:
    if column in file.partition:
        return range_in_partition(file.partition[column])
    least, greatest, nulls = ((file.statistics.get(key) or {}).get(column) for key in ("min", "max", "null_count"))
    return PeriodRange(least, greatest, nulls)


def _periods_in_files(
    spark: SparkSession, location: Location, table: DeltaTable, files: Sequence[TableFile], column: str
) -> Mapping[str, set[str | None]]:
    """Returns the periods of the rows of files, by the path in the log."""
    opened = open_files(spark, location, table, files)
    pairs = sql.select(opened.frame, {FILE: opened.origin[FILE], NAME: sql.name(column)}).distinct().collect()
    periods: dict[str, set[str | None]] = {file.path: set() for file in files}
    for url, period in pairs:
        periods[opened.files[url].path].add(period)
    return periods


def _refuse_other_encoding(location: Location, file: TableFile) -> None:
    """Raises WriteFailed for a file whose path another program has encoded in another way than delta-rs: removing it
    would have no effect."""
    if quote(unquote(file.path), safe=_NOT_ENCODED) != file.path:
        raise fail(
            "WriteFailed",
            f"{location} has the file '{file.path}', whose name another program has encoded in an unusual way, so its "
            "rows cannot be replaced",
            hint="write the table anew with `mode: overwrite`, or write to another table",
        )
