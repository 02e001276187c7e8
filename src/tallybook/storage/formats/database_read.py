"""Reads tables of databases: one query for a table, or several for ranges of its key, all in one snapshot.

A run holds a snapshot of each PostgreSQL database that it reads. All its queries see the rows of that moment, however
long it takes and whatever others write. Without a held snapshot a table is read by one query, which is consistent in
itself. SQLite cannot share a snapshot among connections, so its tables are always read by one query each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tallybook.errors import did_you_mean, fail
from tallybook.model.columns import VALID_FROM, VALID_TO
from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.storage.formats.column_reading import UnreadableType
from tallybook.storage.formats.database_dialect import (
    ColumnQuery,
    DatabaseTable,
    Dialect,
    dialect_of,
    opened,
    source_of,
)
from tallybook.storage.formats.database_source import Access
from tallybook.storage.formats.database_source import source_of as data_source
from tallybook.storage.notation import ISO
from tallybook.storage.scan import FILE, Field, Scan

_LARGE_BYTES = 256 * 2**20
_PART_BYTES = 128 * 2**20
_MOST_PARTS = 32
_WHOLE_NUMBERS = ("int2", "int4", "int8")


def scan_database(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """Returns the rows of a table; none if there is no table. Queries name only the wanted columns that it has."""
    with opened(location) as (dialect, cursor):
        for statement in dialect.setup(location.snapshot, _NO_TABLE):
            cursor.execute(statement)
        table = dialect.find(cursor, location.target)
        if table is None:
            return ()
        queries = _column_queries(dialect, table, fields)
        where = _conditions(dialect, table, fields)
        ranges = _ranges(dialect, cursor, table, location)
    selected = {name: query for name, query in queries.items() if not isinstance(query.type, UnreadableType)}
    doubts = {name: query.doubt for name, query in selected.items() if query.doubt is not None}
    columns = [*(query.sql for query in selected.values()), *doubts.values()] or ["1"]
    names = [f"c{index}" for index in range(len(columns))]
    types = [*(query.type for query in selected.values()), *(T.StringType() for _ in doubts)] or [T.IntegerType()]
    schema = [
        T.StructField(name, type) for name, type in zip([*names, "position"], [*types, T.LongType()], strict=True)
    ]
    statements = [_select(columns, names, table, [*where, *part]) for part in ranges]
    frame = (
        spark.read.format(_source_name(spark, location))
        .schema(T.StructType(schema))
        .options(
            queries=json.dumps(statements),
            setup=json.dumps(dialect.setup(location.snapshot, table)),
            first=str(first),
            location=str(location),
        )
        .load()
    )
    values = dict(zip([*selected, *map(_doubt, doubts)], names, strict=False))
    values |= {FILE: "CAST(NULL AS string)", POSITION: "position"}
    return (
        Scan(
            frame,
            values,
            {name: query.type for name, query in queries.items()},
            frozenset(column.name for column in table.columns),
            tuple(f"{location} part {index}" for index in range(len(statements))),
            text={name: ISO for name, query in selected.items() if query.is_text},
            doubts={name: _doubt(name) for name in doubts},
        ),
    )


_NO_TABLE = DatabaseTable("", (), is_view=True)


def _doubt(name: str) -> str:
    return sql.internal(f"doubt of {name}")


def _column_queries(dialect: Dialect, table: DatabaseTable, fields: Sequence[Field]) -> dict[str, ColumnQuery]:
    """Returns how to read each wanted column that the table has."""
    wanted = {field.physical: field for field in fields}
    return {
        column.name: dialect.query_of(column, wanted[column.name].type)
        for column in table.columns
        if column.name in wanted
    }


def _select(columns: Sequence[str], names: Sequence[str], table: DatabaseTable, where: Sequence[str]) -> str:
    listed = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=True))
    condition = f" WHERE {' AND '.join(f'({part})' for part in where)}" if where else ""
    return f"SELECT {listed} FROM {table.sql}{condition}"


def _conditions(dialect: Dialect, table: DatabaseTable, fields: Sequence[Field]) -> list[str]:
    """Returns the temporal filter as SQL, as far as the database can decide it. Spark filters again."""
    conditions: list[str | None] = []
    for wanted in fields:
        column = table.column(wanted.physical)
        if column is None:
            continue
        if wanted.periods is not None:
            conditions.append(dialect.in_values(column, wanted.periods))
        if wanted.as_of is not None and wanted.name == VALID_FROM:
            conditions.append(dialect.valid_at(column, "<=", wanted.as_of))
        if wanted.as_of is not None and wanted.name == VALID_TO:
            later = dialect.valid_at(column, ">", wanted.as_of)
            conditions.append(later and f"{dialect.quote(column.name)} IS NULL OR {later}")
    return [condition for condition in conditions if condition is not None]


def _ranges(dialect: Dialect, cursor: Any, table: DatabaseTable, location: Location) -> list[list[str]]:
    """Returns the conditions of each query. The ranges have no outer bounds, so that no row is left out."""
    if location.snapshot is None:
        return [[]]
    key, parts = _partitioning(table, location)
    if key is None or parts < 2:
        return [[]]
    name = dialect.quote(key)
    cursor.execute(f"SELECT min({name})::bigint, max({name})::bigint FROM {table.sql}")
    least, greatest = cursor.fetchone()
    if least is None or greatest == least:
        return [[]]
    parts = min(parts, greatest - least + 1)
    bounds = [least + (greatest - least + 1) * part // parts for part in range(1, parts)]
    inner = [[f"{name} >= {low} AND {name} < {high}"] for low, high in pairwise(bounds)]
    return [[f"{name} < {bounds[0]} OR {name} IS NULL"], *inner, [f"{name} >= {bounds[-1]}"]]


def _partitioning(table: DatabaseTable, location: Location) -> tuple[str | None, int]:
    """Returns the column whose ranges are read, and their number: those of the resolver, else of a large table with a
    primary key."""
    size = ceil(table.size / _PART_BYTES) if table.size > _LARGE_BYTES else 1
    given = location.partition_column
    if given is None:
        return table.key, location.partitions or min(size, _MOST_PARTS)
    column = table.column(given)
    if column is None:
        names = [column.name for column in table.columns]
        raise fail(
            "SchemaMismatch",
            f"{location} has no column '{given}', the `partition_column` of rule '{location.rule}'",
            hint=did_you_mean(given, names),
        )
    if column.base not in _WHOLE_NUMBERS:
        raise fail(
            "SchemaMismatch",
            f"column '{given}' of {location} is {column.type}, and cannot be a `partition_column`",
            hint="name a column of type smallint, integer or bigint",
        )
    return given, location.partitions or max(2, min(size, _MOST_PARTS))


_registered: WeakKeyDictionary[SparkSession, dict[Access, str]] = WeakKeyDictionary()
_registering = Lock()


def _source_name(spark: SparkSession, location: Location) -> str:
    """Returns the name of Spark's data source for the database of a location. Registers it in the session once."""
    return source_name(spark, source_access(location), marked=dialect_of(source_of(location)).marks_values)


def source_access(location: Location) -> Access:
    """Returns how to open the database of a location."""
    source = source_of(location)
    return dialect_of(source).access(source)


def source_name(spark: SparkSession, access: Access, *, marked: bool = False) -> str:
    """Returns the name of Spark's data source for a database. Registers it in the session once."""
    with _registering:
        names = _registered.setdefault(spark, {})
        if access not in names:
            source = data_source(access, marked=marked)
            spark.dataSource.register(source)
            names[access] = source.name()
        return names[access]


@dataclass
class _Held:
    """A snapshot that an open connection keeps, and the states of tables in it."""

    states: dict[str, list[Json]] = field(default_factory=dict)


_held: dict[str, _Held] = {}


@contextmanager
def held_snapshots(locations: Sequence[Location]) -> Iterator[dict[Location, Location]]:
    """Holds one snapshot of each database in the block. Returns the locations to read in it."""
    snapshots: dict[Access, str | None] = {}
    with ExitStack() as stack:
        for location in locations:
            access = source_access(location)
            if access not in snapshots:
                dialect, cursor = stack.enter_context(opened(location))
                snapshots[access] = snapshot = dialect.snapshot(cursor)
                if snapshot is not None:
                    _held[snapshot] = _Held()
                    stack.callback(_held.pop, snapshot)
        yield {location: replace(location, snapshot=snapshots[source_access(location)]) for location in locations}


def table_state(location: Location) -> list[Json]:
    """Returns the number of rows of a table, and a checksum if it is cheap; nothing if there is no table."""
    held = _held.get(location.snapshot or "")
    if held is not None and location.target in held.states:
        return held.states[location.target]
    with opened(location) as (dialect, cursor):
        for statement in dialect.setup(location.snapshot, _NO_TABLE):
            cursor.execute(statement)
        table = dialect.find(cursor, location.target)
        state = [] if table is None else [{"file": location.target, **dialect.state(cursor, table)}]
    if held is not None:
        held.states[location.target] = state
    return state
