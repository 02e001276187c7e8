"""SQLite: a file whose columns hold values of any type, so that every value is read as text and parsed strictly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.columns import ColumnType
from tallybook.model.datasource import DatabaseSource, name_parts
from tallybook.storage.formats.database_dialect import (
    ColumnQuery,
    DatabaseColumn,
    DatabaseTable,
    Dialect,
    add_dialect,
    literal,
)
from tallybook.storage.formats.database_source import PRESENT, Access

_SUMMED_BYTES = 64 * 2**20
_MAIN = "main"
_TEXT_AFFINITY = ("char", "clob", "text")
"""Parts of the types whose columns hold numbers as text. Other columns may hold the number 2026 for the text '2026'."""
_NOT_TEXT = "char(65533)"
"""The replacement character, which no text value may have: a blob is not text."""


class SQLite(Dialect):
    """SQLite, a database in a file of this machine."""

    name = "SQLite"
    driver = "adbc_driver_sqlite"
    schemes = ("sqlite",)
    marks_values = True

    def access(self, source: DatabaseSource, *, create: bool = False) -> Access:
        file = sqlite_file(source)
        if not create and not file.exists():
            raise fail("DataNotFound", f"datasource '{source.id}': there is no SQLite database {file}")
        uri = f"file:{quote(str(file))}?mode={'rwc' if create else 'rw'}"
        return Access(self.driver, uri, settings="PRAGMA busy_timeout = 30000")

    def exists(self, source: DatabaseSource) -> bool:
        return sqlite_file(source).exists()

    def find(self, cursor: Any, target: str) -> DatabaseTable | None:
        *schemas, name = name_parts(target)
        if schemas not in ([], [_MAIN]):
            raise fail(
                "DataNotFound",
                f"'{schemas[0]}' is not a schema of SQLite, which has one schema only",
                hint="remove `schema` from the datasource and the rule",
            )
        cursor.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?", (name,))
        found = cursor.fetchone()
        if found is None:
            return None
        cursor.execute("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", (name,))
        columns = tuple(DatabaseColumn(column, type, type.lower()) for column, type in cursor.fetchall())
        return DatabaseTable(self.quote(name), columns, is_view=found[1] == "view")

    def tables(self, cursor: Any, schema: str | None) -> list[str]:
        cursor.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%'"
            " ESCAPE '\\' ORDER BY name"
        )
        return [name for (name,) in cursor.fetchall()]

    def has_triggers(self, cursor: Any, table: DatabaseTable) -> bool:
        cursor.execute("SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger'")
        return any(self.quote(name) == table.sql for (name,) in cursor.fetchall())

    def query_of(self, column: DatabaseColumn, declared: ColumnType) -> ColumnQuery:
        name = self.quote(column.name)
        text = f"CAST({name} AS TEXT)"
        exact = f"CASE WHEN CAST({text} AS REAL) = {name} THEN {text} ELSE printf('%!.17g', {name}) END"
        whole = f"CASE {name} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE {text} END"
        cases = [f"WHEN 'real' THEN {exact}", f"WHEN 'blob' THEN {_NOT_TEXT}"]
        cases += [f"WHEN 'integer' THEN {whole}"] if declared.kind == "boolean" else []
        value = f"CASE typeof({name}) {' '.join(cases)} ELSE {text} END"
        marked = f"CASE WHEN {name} IS NULL THEN '' ELSE {literal(PRESENT)} || {value} END"
        return ColumnQuery(marked, T.StringType(), is_text=True)

    def in_values(self, column: DatabaseColumn, values: Sequence[str]) -> str | None:
        if any("\0" in value for value in values):
            return None
        name = self.quote(column.name)
        compared = name if has_text_affinity(column) else f"CAST({name} AS TEXT)"
        return f"{compared} IN ({', '.join(map(literal, values))})"

    def setup(self, snapshot: str | None, table: DatabaseTable) -> list[str]:
        return ["PRAGMA query_only = 1"]

    def state(self, cursor: Any, table: DatabaseTable) -> Mapping[str, Any]:
        cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        if cursor.fetchone()[0] > _SUMMED_BYTES:
            cursor.execute(f"SELECT count(*) FROM {table.sql}")
            return {"rows": cursor.fetchone()[0]}
        values = " || ',' || ".join(f"quote({self.quote(column.name)})" for column in table.columns)
        cursor.execute(f"SELECT {values} AS row FROM {table.sql}")
        rows, checksum = 0, hashlib.sha256()
        with cursor.fetch_record_batch() as batches:
            for batch in batches:
                rows += batch.num_rows
                for value in batch.column(0).to_pylist():
                    checksum.update(f"{value}\n".encode())
        return {"rows": rows, "checksum": checksum.hexdigest()}


def has_text_affinity(column: DatabaseColumn) -> bool:
    """True if the column holds numbers as text."""
    return any(part in column.base for part in _TEXT_AFFINITY)


def sqlite_file(source: DatabaseSource) -> Path:
    """Returns the file of a SQLite database: `sqlite:///relative`, `sqlite:////absolute`."""
    return Path(source.options.url.partition("://")[2].removeprefix("/").partition("?")[0])


add_dialect(SQLite())
