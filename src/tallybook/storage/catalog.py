"""Tables of the Spark session's own catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.expressions.tree import quote
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.base import FILE, Field, Scan
from tallybook.storage.failure import reason
from tallybook.storage.files import condition, input_files, plain


def scan_table(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """The rows of a table; none when there is no such table. What its files are is the catalog's business."""
    frame = _open(spark, location)
    if frame is None:
        return ()
    here = list(dict.fromkeys(f.physical for f in fields if f.physical in frame.columns))
    types = {name: frame.schema[name].dataType for name in here}
    values = {name: sql.name(name) for name in here} | {FILE: "CAST(NULL AS string)"}
    return (Scan(frame, values, types, frozenset(frame.columns)),)


def table_folders(spark: SparkSession, location: Location) -> set[str]:
    """The folders that a table or view reads, as far as Spark knows; none if there is no such table."""
    frame = _open(spark, location)
    folders = [PurePosixPath(plain(file)).parent for file in input_files(frame)] if frame is not None else []
    return {str(next(path for path in (folder, *folder.parents) if "=" not in path.name)) for folder in folders}


def _open(spark: SparkSession, location: Location) -> DataFrame | None:
    """The table, or None. Its name is an argument of the query: `spark.table` would expand `${...}` in it."""
    name = location.target if "`" in location.target else ".".join(map(quote, location.target.split(".")))
    try:
        frame = spark.sql("SELECT * FROM IDENTIFIER(:name)", {"name": name})
        frame.schema  # noqa: B018  # Spark Connect looks for the table only when it is asked for something
    except AnalysisException as error:
        if condition(error) == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise fail("DataLoadError", f"{location} cannot be opened: {reason(error)}") from error
    return frame
