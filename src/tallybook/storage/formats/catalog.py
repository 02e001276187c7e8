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
from tallybook.storage.failure import error_condition, reason
from tallybook.storage.files import input_files, path_of
from tallybook.storage.formats.base import Ability, Format, register
from tallybook.storage.scan import FILE, Field, Scan


class Catalog(Format):
    """The catalog: Spark knows the files of a table."""

    type = "spark_catalog"
    can = frozenset({Ability.SCAN})
    expands_names = True

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        frame = _open(spark, location)
        if frame is None:
            return ()
        present = list(dict.fromkeys(f.physical for f in fields if f.physical in frame.columns))
        types = {name: frame.schema[name].dataType for name in present}
        values = {name: sql.name(name) for name in present} | {FILE: "CAST(NULL AS string)"}
        return (Scan(frame, values, types, frozenset(frame.columns)),)

    def table_folders(self, spark: SparkSession, location: Location) -> set[str]:
        """Returns the folders of the files that a table or view reads; none if there is no such table."""
        frame = _open(spark, location)
        folders = [PurePosixPath(path_of(file)).parent for file in input_files(frame)] if frame is not None else []
        return {str(next(path for path in (folder, *folder.parents) if "=" not in path.name)) for folder in folders}


CATALOG = register(Catalog())


def _open(spark: SparkSession, location: Location) -> DataFrame | None:
    """Returns the table, None if it does not exist. Its name is a parameter of the query, because `spark.table` would
    expand `${...}` in it."""
    name = location.target if "`" in location.target else ".".join(map(quote, location.target.split(".")))
    try:
        frame = spark.sql("SELECT * FROM IDENTIFIER(:name)", {"name": name})
        frame.schema  # noqa: B018  # Spark Connect looks for the table only when it needs the schema
    except AnalysisException as error:
        if error_condition(error) == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise fail("DataLoadError", f"{location} cannot be opened: {reason(error)}") from error
    return frame
