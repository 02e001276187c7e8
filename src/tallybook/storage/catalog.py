"""Tables of the Spark session's own catalog."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.base import FILE, Field, Scan


def scan_table(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """The rows of a table; none when there is no such table. What its files are is the catalog's business."""
    table = location.target if "`" in location.target else ".".join(map(sql.name, location.target.split(".")))
    if not spark.catalog.tableExists(table):
        return ()
    frame = spark.table(table)
    here = list(dict.fromkeys(f.physical for f in fields if f.physical in frame.columns))
    types = {name: frame.schema[name].dataType for name in here}
    values = {name: sql.name(name) for name in here} | {FILE: "CAST(NULL AS string)"}
    return (Scan(frame, values, types, frozenset(frame.columns)),)
