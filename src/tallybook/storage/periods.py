"""Rows that say no period: the temporal filter leaves them out of every run, so somebody must be told."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import parquet as pq
from pyspark.sql import SparkSession

from tallybook.model.columns import PERIOD
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.storage.base import Field, Scan, fields_of, quoted
from tallybook.storage.files import plain
from tallybook.storage.read import scan

_SPACE = 0x20


def rows_without_period(spark: SparkSession, locations: Sequence[Location], table: Table) -> int:
    """How many rows of a table have a period column that is NULL or blank; 0 where rows do not say their period.

    The filter of a run leaves such rows out while it reads, where they cannot be counted without giving up that Spark
    skips what it need not read. So they are counted in a job of their own that reads one column. Statistics of local
    Parquet files mostly show that there are none; then there is no job.
    """
    field = next(each for each in fields_of(table) if each.name == PERIOD)
    scans = [found for location in locations for found in scan(spark, location, [field], 0)]
    return sum(_count(found, field) for found in scans if field.physical in found.types and not _filled(found, field))


def _count(found: Scan, field: Field) -> int:
    period = quoted(field.physical)
    return found.frame.select(period).where(period.isNull() | period.rlike(r"^\s*$")).count()


def _filled(found: Scan, field: Field) -> bool:
    """True if the statistics of local Parquet files show that every value begins with a visible character."""
    if field.physical in found.text:
        return False
    try:
        return all(_filled_file(plain(file), field.physical) for file in found.files)
    except (pa.ArrowException, OSError):
        return False


def _filled_file(path: str, column: str) -> bool:
    footer = pq.read_metadata(path)
    index = next((i for i in range(footer.num_columns) if footer.schema.column(i).path == column), None)
    if index is None:
        return False
    found = (footer.row_group(group).column(index).statistics for group in range(footer.num_row_groups))
    return all(
        each is not None
        and each.has_null_count
        and each.null_count == 0
        and each.has_min_max
        and each.min_raw[:1] > bytes([_SPACE])
        for each in found
    )
