"""Tables of the Spark session's own catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.expressions.tree import quote
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.failure import reason
from tallybook.storage.files import input_files, path_of
from tallybook.storage.formats.base import Ability, Format, register
from tallybook.storage.formats.catalog_table import open_table, write_table
from tallybook.storage.output import Output
from tallybook.storage.scan import FILE, Field, Scan
from tallybook.storage.stage import Written


class Catalog(Format):
    """The catalog: Spark knows the files of a table."""

    type = "spark_catalog"
    can = frozenset({Ability.SCAN, Ability.WRITE})
    expands_names = True

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        frame = open_table(spark, location)
        if frame is None:
            return ()
        present = list(dict.fromkeys(f.physical for f in fields if f.physical in frame.columns))
        types = {name: frame.schema[name].dataType for name in present}
        values = {name: sql.name(name) for name in present} | {FILE: "CAST(NULL AS string)"}
        return (Scan(frame, values, types, frozenset(frame.columns)),)

    def probe_with_spark(self, session: Callable[[], SparkSession], location: Location) -> list[str]:
        """Returns the tables and views of the datasource's schema, or of the session's current one."""
        schema = location.source.default_schema
        where = f" IN {'.'.join(map(quote, schema.split('.')))}" if schema else ""
        try:
            return sorted(row.tableName for row in session().sql(f"SHOW TABLES{where}").collect())
        except AnalysisException as error:
            raise fail("DataLoadError", f"the tables of {schema} cannot be listed: {reason(error)}") from error

    def check_destination(self, location: Location, output: Output) -> None:
        """Only Spark knows what is there, so the table is checked when the output is written."""

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        return write_table(spark, frame, location, output)

    def written_by(self, location: Location, output: Output) -> Location:
        """Returns the whole table: only Spark knows the files of an output in it."""
        return location

    def has_written(self, location: Location, output: Output) -> bool | None:
        return None

    def table_folders(self, spark: SparkSession, location: Location) -> set[str]:
        """Returns the folders of the files that a table or view reads; none if there is no such table."""
        frame = open_table(spark, location)
        folders = [PurePosixPath(path_of(file)).parent for file in input_files(frame)] if frame is not None else []
        return {str(next(path for path in (folder, *folder.parents) if "=" not in path.name)) for folder in folders}


CATALOG = register(Catalog())
