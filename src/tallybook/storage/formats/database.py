"""Tables of databases: PostgreSQL and SQLite, read and written through ADBC, and others, read through JDBC."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.resolve.overlap import Area, area_of
from tallybook.storage.formats.base import Ability, Format, register
from tallybook.storage.formats.database_dialect import Dialect, dialect_of, opened, source_of
from tallybook.storage.formats.database_jdbc import is_jdbc, not_written, scan_jdbc
from tallybook.storage.formats.database_postgresql import PostgreSQL
from tallybook.storage.formats.database_read import held_snapshots, scan_database, table_state
from tallybook.storage.formats.database_sqlite import SQLite
from tallybook.storage.formats.database_write import Target
from tallybook.storage.formats.database_write_postgresql import write_postgresql
from tallybook.storage.formats.database_write_sqlite import write_sqlite
from tallybook.storage.output import Output
from tallybook.storage.scan import Field, Scan
from tallybook.storage.stage import Written

_WRITE: dict[type[Dialect], Callable[[SparkSession, DataFrame, Location, Output], Written]] = {
    PostgreSQL: write_postgresql,
    SQLite: write_sqlite,
}


class Database(Format):
    """A database: it keeps no versions, but a run can hold a snapshot of it."""

    type = "database"
    can = frozenset({Ability.SCAN, Ability.WRITE, Ability.REPLACE_PERIOD, Ability.FINGERPRINT})

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        if is_jdbc(source_of(location)):
            return scan_jdbc(spark, location, fields)
        return scan_database(spark, location, fields, first)

    @contextmanager
    def hold(self, locations: Sequence[Location]) -> Iterator[dict[Location, Location]]:
        with held_snapshots([location for location in locations if not is_jdbc(source_of(location))]) as held:
            yield held

    def check_destination(self, location: Location, output: Output) -> None:
        if is_jdbc(source_of(location)):
            raise not_written(location)
        if dialect_of(source_of(location)).exists(source_of(location)):
            with opened(location, "WriteFailed") as (dialect, cursor):
                Target(dialect, cursor, location, output).check()

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        return _WRITE[type(dialect_of(source_of(location)))](spark, frame, location, output)

    def written_by(self, location: Location, output: Output) -> Location:
        """Returns the whole table: its rows do not say which output wrote them."""
        return location

    def has_written(self, location: Location, output: Output) -> bool | None:
        if not dialect_of(source_of(location)).exists(source_of(location)):
            return False
        with opened(location) as (dialect, cursor):
            return Target(dialect, cursor, location, output).is_written()

    def fingerprint(self, spark: SparkSession, location: Location) -> list[Json]:
        return [] if is_jdbc(source_of(location)) else table_state(location)

    def areas_read(self, location: Location) -> Iterable[Area]:
        return [area_of(location)]

    def probe(self, location: Location) -> list[str] | None:
        if is_jdbc(source_of(location)):
            return None
        with opened(location) as (dialect, cursor):
            return dialect.tables(cursor, location.source.default_schema)


DATABASE = register(Database())
