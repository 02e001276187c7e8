"""Writes tables of PostgreSQL. Spark's tasks copy the rows into a staging table, next to the table that is written.

The name of a staging table contains the run, the operation and the attempt. The attempt holds an advisory lock of that
name while it lives, on a connection of the driver. So the next writer in the schema can tell the staging tables of
killed attempts from those of others that still write, and drops them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.datasource import name_parts
from tallybook.model.location import Location
from tallybook.storage.failure import SPARK_ERRORS, database_fault
from tallybook.storage.formats.database_dialect import DatabaseColumn, DatabaseTable, Dialect, literal, opened
from tallybook.storage.formats.database_read import source_access, source_name
from tallybook.storage.formats.database_write import Publishing
from tallybook.storage.output import Output
from tallybook.storage.stage import Written

_STAGING = re.compile(r"tallybook_[0-9a-f]{32}_[1-9][0-9]{0,8}_[0-9a-f]{8}")
_TYPES: dict[type[T.DataType], str] = {
    T.StringType: "text",
    T.LongType: "bigint",
    T.IntegerType: "integer",
    T.BooleanType: "boolean",
    T.DateType: "date",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
}
_TEXT = frozenset({"text", "varchar", "bpchar"})
_NUMBERS = frozenset({"int2", "int4", "int8", "numeric", "money", "float4", "float8"})
_TIMES = frozenset({"date", "timestamp", "timestamptz"})
"""The types, with those of numbers, for which a cast may change a value without an error."""


def write_postgresql(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
    """Writes the rows as one transaction. A retry after the commit writes nothing and returns what was committed."""
    with opened(location, "WriteFailed") as (dialect, cursor):
        publishing = PostgreSQLPublishing(
            dialect, cursor, location, output, frame.schema, "", _schema(cursor, location)
        )
        if publishing.is_written():
            return publishing.publish()
        with _staging_table(publishing) as staging:
            publishing.staging = staging
            _copy(spark, frame, publishing)
            return publishing.publish()


def _schema(cursor: Any, location: Location) -> str:
    """Returns the schema in which the table is, or will be created."""
    named = name_parts(location.target)[:-1]
    if named:
        return named[0]
    cursor.execute("SELECT current_schema()::text")
    schema = cursor.fetchone()[0]
    if schema is None:
        raise fail("WriteFailed", f"{location} has no schema", hint="name it in the `schema` of the datasource")
    return str(schema)


@contextmanager
def _staging_table(publishing: PostgreSQLPublishing) -> Iterator[str]:
    """Creates a staging table and drops it in the end. Before, drops those that killed attempts have left."""
    cursor, dialect, output = publishing.cursor, publishing.dialect, publishing.output
    name = f"tallybook_{output.run_id.replace('-', '')}_{output.seq}_{uuid4().hex[:8]}"
    if not _STAGING.fullmatch(name):
        name = f"tallybook_{uuid4().hex}_{output.seq}_{uuid4().hex[:8]}"
    cursor.execute(f"SELECT pg_advisory_lock({_lock(name)})")
    _drop_abandoned(cursor, dialect, publishing.schema_name)
    exists = dialect.find(cursor, publishing.location.target) is not None
    columns = ", ".join(f"{dialect.quote(field.name)} {_type(field)}" for field in publishing.schema.fields)
    table = f"{dialect.quote(publishing.schema_name)}.{dialect.quote(name)}"
    cursor.execute(f"CREATE {'UNLOGGED ' if exists else ''}TABLE {table} ({columns})")
    publishing.may_rename = not exists
    try:
        yield name
    finally:
        with suppress(Exception):  # the next writer drops it
            cursor.execute(f"DROP TABLE IF EXISTS {table}")


def _lock(name: str) -> str:
    return f"hashtextextended({literal(name)}, 0)"


def _drop_abandoned(cursor: Any, dialect: Dialect, schema: str) -> None:
    """Drops the staging tables of attempts that no longer live. One that is still locked by a query is left."""
    cursor.execute(
        "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname LIKE 'tallybook\\_%'",
        (schema,),
    )
    for (name,) in cursor.fetchall():
        if not _STAGING.fullmatch(name):
            continue
        cursor.execute(f"SELECT pg_try_advisory_lock({_lock(name)})")
        if cursor.fetchone()[0]:
            with suppress(Exception):
                cursor.execute("SET lock_timeout = '5s'")
                cursor.execute(f"DROP TABLE IF EXISTS {dialect.quote(schema)}.{dialect.quote(name)}")
            cursor.execute("SET lock_timeout = 0")
            cursor.execute(f"SELECT pg_advisory_unlock({_lock(name)})")


def _type(field: T.StructField) -> str:
    type = field.dataType
    if isinstance(type, T.DecimalType):
        return f"numeric({type.precision},{type.scale})"
    name = _TYPES.get(type.__class__)
    if name is None:
        raise fail("WriteFailed", f"column '{field.name}' is {type.simpleString()}, which databases cannot hold")
    return name


def _copy(spark: SparkSession, frame: DataFrame, publishing: PostgreSQLPublishing) -> None:
    """Lets Spark's tasks copy the rows into the staging table. A failure to compute them is raised as Spark raised
    it."""
    location = publishing.location
    options = {
        "location": str(location),
        "table": publishing.staging,
        "table_schema": publishing.schema_name,
        "comment": f"COMMENT ON TABLE {publishing.staged_sql} IS",
    }
    # A writer looks for its data source in the active session of the thread, which a thread of ours may not have.
    # PySpark makes the session active when it creates a frame.
    spark.createDataFrame([], "nothing int")
    try:
        name = source_name(spark, source_access(location))
        frame.write.format(name).options(**options).mode("append").save()
    except SPARK_ERRORS as error:
        fault = database_fault(error)
        if fault is None or fault["doing"] != "write":
            raise
        raise fail("WriteFailed", f"{location} could not be written: {fault['reason']}") from error


@dataclass
class PostgreSQLPublishing(Publishing):
    """An output that is staged in a table of PostgreSQL."""

    staging: str
    schema_name: str
    copied: int = 0
    """The number of staged rows."""
    may_rename: bool = False
    """True if the staging table is a table like any other, so that it can become the new table."""

    @property
    def staged_sql(self) -> str:
        return f"{self.dialect.quote(self.schema_name)}.{self.dialect.quote(self.staging)}"

    @property
    def _table_sql(self) -> str:
        name = name_parts(self.location.target)[-1]
        return f"{self.dialect.quote(self.schema_name)}.{self.dialect.quote(name)}"

    def begin(self) -> None:
        """Begins the transaction. It waits for tasks that still copy, such as those that Spark has given up: their rows
        must be counted, or not be there at all."""
        self.cursor.execute("BEGIN")
        if self.staging:
            self.cursor.execute(f"LOCK TABLE {self.staged_sql} IN ACCESS EXCLUSIVE MODE")
        self.cursor.execute(f"SELECT pg_advisory_xact_lock({_lock(f'tallybook {self._table_sql}')})")
        if not self.has_marks:  # two transactions cannot create the same table at once
            self.cursor.execute(f"SELECT pg_advisory_xact_lock({_lock(f'tallybook marks {self.schema_name}')})")
        if (table := self.dialect.find(self.cursor, self.location.target)) and not table.is_view:
            self.cursor.execute(f"LOCK TABLE {table.sql} IN SHARE ROW EXCLUSIVE MODE")
        if self.staging:
            self._drop_repeated_rows()

    def _drop_repeated_rows(self) -> None:
        """Deletes rows that tasks copied before they were repeated. The comment of the staging table has the
        transactions that count."""
        self.cursor.execute(f"SELECT obj_description({literal(self.staged_sql)}::regclass, 'pg_class')")
        copied = json.loads(self.cursor.fetchone()[0])
        self.cursor.execute(f"SELECT count(*) FROM {self.staged_sql}")
        if self.cursor.fetchone()[0] != sum(rows for _, rows in copied):
            counted = ", ".join(f"'{transaction % 2**32}'" for transaction, _ in copied) or "''"
            self.cursor.execute(f"DELETE FROM {self.staged_sql} WHERE xmin::text NOT IN ({counted})")
        self.copied = sum(rows for _, rows in copied)

    def create_table(self) -> int:
        if self.may_rename:
            name = self.dialect.quote(name_parts(self.location.target)[-1])
            self.cursor.execute(f"COMMENT ON TABLE {self.staged_sql} IS NULL")
            self.cursor.execute(f"ALTER TABLE {self.staged_sql} RENAME TO {name}")
            return self.copied
        self.cursor.execute(f"CREATE TABLE {self._table_sql} (LIKE {self.staged_sql})")
        self.cursor.execute(f"INSERT INTO {self._table_sql} SELECT * FROM {self.staged_sql}")
        return int(self.cursor.rowcount)

    def insert(self, table: DatabaseTable) -> int:
        columns = [column for field in self.schema.fields if (column := table.column(field.name))]
        self._refuse_inexact(columns)
        names = ", ".join(self.dialect.quote(column.name) for column in columns)
        values = ", ".join(map(self._value, self.schema.fields, columns))
        self.cursor.execute(f"INSERT INTO {table.sql} ({names}) SELECT {values} FROM {self.staged_sql}")
        self.refuse_lost_rows(self.copied, int(self.cursor.rowcount))
        return self.copied

    def _value(self, field: T.StructField, column: DatabaseColumn) -> str:
        """Returns SQL for a value to insert. Only text for a column that is not text needs an explicit cast: it would
        cut the text for a column that is too short."""
        name = self.dialect.quote(field.name)
        is_text = isinstance(field.dataType, T.StringType)
        return f"{name}::{column.type}" if is_text and column.base not in _TEXT else name

    def _refuse_inexact(self, columns: list[DatabaseColumn]) -> None:
        """Raises WriteFailed if a value would be changed by the type of its column."""
        for field, column in zip(self.schema.fields, columns, strict=True):
            condition = self._is_changed(field, column)
            if condition is None:
                continue
            name = self.dialect.quote(column.name)
            self.cursor.execute(f"SELECT {name}::text FROM {self.staged_sql} WHERE {condition} LIMIT 1")
            if found := self.cursor.fetchone():
                raise fail(
                    "WriteFailed",
                    f"{self.location} could not be written: column '{column.name}' has the value {found[0]}, which "
                    f"cannot be stored exactly as {column.type}",
                    hint="round or convert the value in the project, or change the type of the column",
                )

    def _is_changed(self, field: T.StructField, column: DatabaseColumn) -> str | None:
        """Returns a condition that is true for values that a cast would change; None if it changes none. Text for a
        column of times must begin with a date in ISO form: in others PostgreSQL guesses what is the month.

        Raises WriteFailed for a type whose casts are not known here.
        """
        name, own = self.dialect.quote(column.name), _type(field)
        if column.type == own:
            return None
        if own == "text":
            if column.base not in _NUMBERS | _TIMES:
                return None
            wide = "timestamptz" if column.base in _TIMES else "numeric"
            guessed = f"{name} !~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}' OR " if column.base in _TIMES else ""
            return f"{guessed}{name}::{column.type}::{wide} IS DISTINCT FROM {name}::{wide}"
        if column.base not in _NUMBERS | _TIMES | _TEXT | {"bool"}:
            raise fail(
                "WriteFailed",
                f"{self.location} could not be written: column '{column.name}' is {column.type}, and the output writes "
                f"values of type {field.dataType.simpleString()} to it",
                hint="write text to this column, or change its type",
            )
        back = "numeric" if column.base == "money" else own  # money has no other way back
        return f"{name}::{column.type}::{back} IS DISTINCT FROM {name}" if column.base in _NUMBERS | _TIMES else None
