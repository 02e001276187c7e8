"""Counts rows without a period: the temporal filter leaves them out of every run, so a run warns of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from tallybook.model.columns import PERIOD
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.storage.files import plain
from tallybook.storage.formats import Format, format_of
from tallybook.storage.scan import Field, Scan, fields_of, quoted


def rows_without_period(spark: SparkSession, locations: Sequence[Location], table: Table) -> int:
    """How many rows of a table have a period column that is NULL or blank; 0 where rows do not say their period.

    The filter of a run leaves such rows out while it reads, where they cannot be counted without giving up that Spark
    skips what it need not read. So they are counted in a job of their own that reads one column. Statistics of local
    Parquet files mostly show that there are none; then there is no job.
    """
    field = next(each for each in fields_of(table) if each.name == PERIOD)
    return sum(
        _count(scan, field)
        for location in locations
        for scan in format_of(location).scan(spark, location, [field], 0)
        if field.physical in scan.types and not _never_blank(format_of(location), scan, field)
    )


def _count(scan: Scan, field: Field) -> int:
    period = quoted(field.physical)
    return scan.frame.select(period).where(period.isNull() | period.rlike(r"^\s*$")).count()


def _never_blank(format: Format, scan: Scan, field: Field) -> bool:
    """True if the statistics of all files show that there is a period in every row."""
    if field.physical in scan.text or not scan.files:
        return False
    try:
        return all(format.never_blank(plain(file), field.physical) for file in scan.files)
    except (pa.ArrowException, OSError):
        return False
