"""PostgreSQL: its catalog, its types, and snapshots that several connections share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.columns import ColumnType
from tallybook.model.datasource import DatabaseSource
from tallybook.storage.credentials import secret_parts
from tallybook.storage.formats.column_reading import UnreadableType
from tallybook.storage.formats.database_dialect import (
    ColumnQuery,
    DatabaseColumn,
    DatabaseTable,
    Dialect,
    add_dialect,
    literal,
)
from tallybook.storage.formats.database_source import Access

_LONGEST_NAME = 63
_MOST_DIGITS = 38
_SUMMED_BYTES = 64 * 2**20
"""Rows of a table up to this size have a checksum; rows of a larger one are only counted."""
_SETTINGS = (
    "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false),"
    " set_config('standard_conforming_strings', 'on', false)"
)
"""Casts between timestamps with and without a time zone, and of either to text, depend on settings of the server."""
_DEFAULTS = {"client_encoding": "UTF8", "application_name": "tallybook", "connect_timeout": "30"}
_PLAIN: dict[str, T.DataType] = {
    "int2": T.ShortType(),
    "int4": T.IntegerType(),
    "int8": T.LongType(),
    "bool": T.BooleanType(),
    "float4": T.FloatType(),
    "float8": T.DoubleType(),
    "text": T.StringType(),
    "varchar": T.StringType(),
}
_AS_TEXT = frozenset({"bpchar", "name", "citext", "uuid", "json", "jsonb", "enum"})
_TEMPORAL: dict[str, tuple[str, str, T.DataType]] = {
    "date": ("0001-01-01", "9999-12-31", T.DateType()),
    "timestamp": ("0001-01-01", "9999-12-31 23:59:59.999999", T.TimestampNTZType()),
    "timestamptz": ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", T.TimestampType()),
}
"""The first and last value that Spark can hold. PostgreSQL also has infinity, and years before 1 and after 9999."""

_FIND = """
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text,
       coalesce((SELECT sum(pg_table_size(part.relid))::bigint FROM pg_partition_tree(c.oid) part), 0)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS = """
WITH RECURSIVE types AS (
    SELECT a.attnum, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
           a.atttypid AS base, a.atttypmod AS modifier
    FROM pg_attribute a
    WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT of.attnum, of.name, of.type, t.typbasetype, t.typtypmod
    FROM types of JOIN pg_type t ON t.oid = of.base AND t.typtype = 'd'
)
SELECT of.name, of.type, CASE t.typtype WHEN 'e' THEN 'enum' ELSE t.typname::text END, of.modifier
FROM types of JOIN pg_type t ON t.oid = of.base AND t.typtype <> 'd'
ORDER BY of.attnum
"""
"""The columns of a table. A domain may be made of another one; the innermost type and its modifier count."""
_KEY = """
SELECT a.attname::text
FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
JOIN pg_type t ON t.oid = a.atttypid
WHERE i.indrelid = $1::bigint::oid AND i.indisprimary AND i.indnkeyatts = 1 AND t.typname IN ('int2', 'int4', 'int8')
"""
_CASCADES = """
SELECT conrelid::regclass::text, conname::text
FROM pg_constraint
WHERE confrelid = to_regclass($1) AND contype = 'f' AND confdeltype IN ('c', 'n', 'd')
ORDER BY 1, 2
"""
_TRIGGERS = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass($1) AND NOT tgisinternal)
            OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = to_regclass($1))
"""
_TABLES = """
SELECT n.nspname::text, c.relname::text, pg_table_is_visible(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
ORDER BY 1, 2
"""
_IN_PHYSICAL_ORDER = (
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL enable_indexscan = off",
    "SET LOCAL enable_indexonlyscan = off",
)
"""Makes queries return the rows of a table in the order in which they are stored. So rows get the same ids whenever the
same rows are read."""


class PostgreSQL(Dialect):
    """PostgreSQL, from version 12."""

    name = "PostgreSQL"
    driver = "adbc_driver_postgresql"
    schemes = ("postgresql", "postgres")

    def access(self, source: DatabaseSource, *, create: bool = False) -> Access:
        parts = secret_parts(source, ("password",), ("user",))
        url = urlsplit(source.options.url)
        parameters = _DEFAULTS | dict(parse_qsl(url.query, keep_blank_values=True)) | parts
        uri = f"{url.scheme}://{url.netloc}{url.path}?{urlencode(parameters, quote_via=quote)}"
        return Access(self.driver, uri, parts.get("password"), _SETTINGS)

    def quote(self, name: str) -> str:
        if len(name.encode()) > _LONGEST_NAME:
            raise fail(
                "SchemaMismatch",
                f"'{name}' cannot be a name in PostgreSQL, which has at most {_LONGEST_NAME} bytes",
                hint="PostgreSQL would cut the name; use a shorter one",
            )
        return super().quote(name)

    def find(self, cursor: Any, target: str) -> DatabaseTable | None:
        cursor.execute(_FIND, (self.qualified(target),))
        found = cursor.fetchone()
        if found is None:
            return None
        oid, schema, name, kind, size = found
        cursor.execute(_COLUMNS, (oid,))
        columns = tuple(_column(*row) for row in cursor.fetchall())
        cursor.execute(_KEY, (oid,))
        key = cursor.fetchone()
        sql = f"{self.quote(schema)}.{self.quote(name)}"
        return DatabaseTable(sql, columns, key[0] if key else None, size, is_view=kind in "vf")

    def tables(self, cursor: Any, schema: str | None) -> list[str]:
        cursor.execute(_TABLES)
        found = cursor.fetchall()
        return [name for of, name, visible in found if (visible if schema is None else of == schema)]

    def cascades(self, cursor: Any, table: DatabaseTable) -> tuple[str, str] | None:
        cursor.execute(_CASCADES, (table.sql,))
        found = cursor.fetchone()
        return None if found is None else (found[0], found[1])

    def has_triggers(self, cursor: Any, table: DatabaseTable) -> bool:
        cursor.execute(_TRIGGERS, (table.sql,))
        return cursor.fetchone() is not None

    def query_of(self, column: DatabaseColumn, declared: ColumnType) -> ColumnQuery:
        name = self.quote(column.name)
        if column.base in _PLAIN:
            return ColumnQuery(name, _PLAIN[column.base])
        if column.base in _AS_TEXT:
            return ColumnQuery(f"{name}::text", T.StringType())
        if column.base in _TEMPORAL:
            first, last, type = _TEMPORAL[column.base]
            good = f"{name} BETWEEN '{first}'::{column.base} AND '{last}'::{column.base}"
            return _guarded(name, good, type)
        if column.base == "numeric":
            return _numeric(name, column, declared)
        in_view = "cast the column in a view, to a type that can be declared, and read the view"
        return ColumnQuery("NULL::text", UnreadableType(column.type, in_view))

    def valid_at(self, column: DatabaseColumn, comparison: str, day: date) -> str | None:
        if column.base not in _TEMPORAL:
            return None
        zone = " 00:00:00+00" if column.base == "timestamptz" else ""
        return f"{self.quote(column.name)} {comparison} '{day.isoformat()}{zone}'::{column.base}"

    def in_values(self, column: DatabaseColumn, values: Sequence[str]) -> str | None:
        if column.base not in ("text", "varchar", "bpchar"):
            return None
        return f"{self.quote(column.name)} IN ({', '.join(map(_text, values))})"

    def snapshot(self, cursor: Any) -> str | None:
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        return str(cursor.fetchone()[0])

    def setup(self, snapshot: str | None, table: DatabaseTable) -> list[str]:
        shared = [] if snapshot is None else [f"SET TRANSACTION SNAPSHOT {literal(snapshot)}"]
        ordered = [] if table.is_view else _IN_PHYSICAL_ORDER
        return ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", *shared, *ordered]

    def state(self, cursor: Any, table: DatabaseTable) -> Mapping[str, Any]:
        if table.size > _SUMMED_BYTES or table.is_view:
            cursor.execute(f"SELECT count(*) FROM {table.sql}")
            return {"rows": cursor.fetchone()[0]}
        row = self.quote("tallybook row")
        hashed = f"coalesce(sum(hashtextextended({row}::text, 0)), 0)::text"
        cursor.execute(f"SELECT count(*), {hashed} FROM {table.sql} {row}")
        rows, checksum = cursor.fetchone()
        return {"rows": rows, "checksum": checksum}


def _column(name: str, type: str, base: str, modifier: int) -> DatabaseColumn:
    if base != "numeric" or modifier < 0:
        return DatabaseColumn(name, type, base)
    digits, scale = modifier - 4 >> 16 & 0xFFFF, (modifier - 4 & 0x7FF ^ 0x400) - 0x400
    return DatabaseColumn(name, type, base, digits, scale)


def _numeric(name: str, column: DatabaseColumn, declared: ColumnType) -> ColumnQuery:
    """Reads a numeric. If its own type fits Spark, only NaN is bad. If it has no limits, or more digits than Spark, the
    declared decimal decides: a value that does not fit exactly is bad, never rounded."""
    digits, scale = column.precision, column.scale
    if digits is not None and scale is not None and 0 <= scale <= digits <= _MOST_DIGITS:
        return _guarded(name, f"{name} <> 'NaN'", T.DecimalType(digits, scale))
    if declared.kind != "decimal":
        named = f"{column.type}, whose values have any number of digits"
        digits_needed = "declare a decimal with as many digits as the values have, such as decimal(38,10)"
        return ColumnQuery("NULL::text", UnreadableType(named, digits_needed))
    fits = f"{name} = round({name}, {declared.scale}) AND abs({name}) < 1e{declared.integer_digits}"
    return _guarded(name, fits, T.DecimalType(declared.precision, declared.scale))


def _guarded(name: str, good: str, type: T.DataType) -> ColumnQuery:
    return ColumnQuery(f"CASE WHEN {good} THEN {name} END", type, f"CASE WHEN NOT ({good}) THEN {name}::text END")


def _text(value: str) -> str:
    """Returns a text literal in which a backslash is a backslash, whatever the settings of the server are."""
    escaped = literal(value)
    return f" E{escaped}".replace("\\", "\\\\") if "\\" in value else escaped


add_dialect(PostgreSQL())
