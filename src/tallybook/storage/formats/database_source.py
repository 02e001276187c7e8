"""Spark's Python data source for databases: reads queries and writes staging tables through ADBC, as Arrow batches.

Python workers of Spark execute it, on machines that may not have Tallybook. So the classes are sent by value, and the
module imports nothing of Tallybook: a worker needs PyArrow and the ADBC driver only. The connection string is part of
the class, which Spark keeps as bytes: options would be visible in the plans of a Connect server, and a password in them
too.
"""

from __future__ import annotations

import importlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

PRESENT = "="
"""The first character of every value that a query marks with `marked`; NULL is the empty text."""
INSTALL = "pip install 'tallybook[databases]'"
_POSITION_BITS = 40


@dataclass(frozen=True)
class Access:
    """How to open a database: the package of its ADBC driver, and a connection string that may have a password."""

    driver: str
    uri: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    settings: str | None = None
    """A statement that gives every connection the same settings, whatever those of the server or the user are."""

    def open(self) -> Any:
        """Returns a connection on which every statement is its own transaction, until one begins a transaction."""
        connection = importlib.import_module(f"{self.driver}.dbapi").connect(self.uri, autocommit=True)
        try:
            if self.settings is not None:
                with connection.cursor() as cursor:
                    cursor.execute(self.settings)
        except BaseException:
            connection.close()
            raise
        return connection

    def hide(self, text: str) -> str:
        """Returns the text without the password."""
        return text if not self.secret else text.replace(self.secret, "***")


class DatabaseError(Exception):
    """A failure of a database in a worker. Its text is JSON, the last line of the traceback that Spark reports."""


def fault(access: Access, doing: str, location: str, error: Exception) -> DatabaseError:
    """Returns what a worker raises instead of an error of ADBC, without the password and the text of the query."""
    if isinstance(error, ModuleNotFoundError):
        text = f"a Python worker of Spark has no package {error.name}; on every machine of the cluster: {INSTALL}"
    else:
        text = error_text(error)
    return DatabaseError(json.dumps({"doing": doing, "location": location, "reason": access.hide(text)}))


def error_text(error: Exception) -> str:
    """Returns the message of a database in one line: the primary message of PostgreSQL if there is one."""
    details = dict(getattr(error, "details", None) or ())
    primary = details.get(b"PG_DIAG_MESSAGE_PRIMARY") or details.get("PG_DIAG_MESSAGE_PRIMARY")
    if primary:
        more = details.get(b"PG_DIAG_MESSAGE_DETAIL") or b""
        parts = [part.decode(errors="replace") if isinstance(part, bytes) else part for part in (primary, more) if part]
        return " ".join(": ".join(parts).split())
    text = str(error).partition("\n")[0].partition(". SQLSTATE:")[0]
    return " ".join(text.split()).removeprefix("IO: ").removeprefix("[libpq] ")


@dataclass
class Slice(InputPartition):
    """One query of a scan. `index` is its ordinal among all queries of the table."""

    index: int
    query: str


class Reader(DataSourceReader):
    """Reads each query of a scan in one task."""

    def __init__(self, access: Access, schema: StructType, options: Mapping[str, str]) -> None:
        self.access = access
        self.schema = schema
        self.setup: Sequence[str] = json.loads(options["setup"])
        self.queries: Sequence[str] = json.loads(options["queries"])
        self.first = int(options["first"])
        self.location = options["location"]

    def partitions(self) -> list[Slice]:
        return [Slice(self.first + index, query) for index, query in enumerate(self.queries)]

    def read(self, partition: Slice) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        schema = to_arrow_schema(self.schema, timezone="UTC")
        try:
            with self.access.open() as connection, connection.cursor() as cursor:
                for statement in self.setup:
                    cursor.execute(statement)
                cursor.execute(partition.query)
                position = partition.index << _POSITION_BITS
                with cursor.fetch_record_batch() as batches:
                    for batch in batches:
                        if batch.num_rows:
                            positions = pa.arange(position, position + batch.num_rows)
                            position += batch.num_rows
                            columns = [*batch.columns, positions]
                            arrays = [_exact(column, type) for column, type in zip(columns, schema.types, strict=True)]
                            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except GeneratorExit:
            raise
        except Exception as error:
            raise fault(self.access, "read", self.location, error) from None


def _exact(column: pa.Array, type: pa.DataType) -> pa.Array:
    """Returns values in their type. PostgreSQL's driver returns a numeric as text; SQLite's guesses the type of a
    column from its first rows, so its queries return marked text."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == type:
        return column
    return column.cast(type)


def unmarked(text: pa.Array) -> pa.Array:
    """Returns the values of marked text: without their first character, and NULL for the empty text."""
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), pc.utf8_slice_codeunits(text, 1))


class MarkedReader(Reader):
    """Reads queries whose values are marked text."""

    def read(self, partition: Slice) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        for batch in super().read(partition):
            arrays = [unmarked(column) if pa.types.is_string(column.type) else column for column in batch.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


@dataclass
class Copied(WriterCommitMessage):
    """The transaction of a task, and how many rows it has committed."""

    transaction: int
    rows: int


class Writer(DataSourceArrowWriter):
    """Copies the rows of each task into a staging table, in one transaction of the task.

    A task that was repeated may have committed more than once. So the staging table remembers, in its comment, which
    transactions count. The comment is written when all tasks have succeeded.
    """

    def __init__(self, access: Access, options: Mapping[str, str]) -> None:
        self.access = access
        self.table = options["table"]
        self.table_schema = options["table_schema"]
        self.comment = options["comment"]
        self.location = options["location"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Copied:
        try:
            with self.access.open() as connection, connection.cursor() as cursor:
                first = next(iterator, None)
                if first is None:
                    return Copied(0, 0)
                cursor.execute("BEGIN")
                counted = _Counted(first, iterator)
                reader = pa.RecordBatchReader.from_batches(first.schema, counted)
                cursor.adbc_ingest(self.table, reader, mode="append", db_schema_name=self.table_schema)
                cursor.execute("SELECT pg_current_xact_id()::text")
                transaction = int(cursor.fetchone()[0])
                cursor.execute("COMMIT")
                return Copied(transaction, counted.rows)
        except Exception as error:
            raise _own_failure(error) or fault(self.access, "write", self.location, error) from None

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        copied = [(message.transaction, message.rows) for message in messages if isinstance(message, Copied)]
        text = json.dumps([pair for pair in copied if pair[1]])
        try:
            with self.access.open() as connection, connection.cursor() as cursor:
                cursor.execute(f"{self.comment} '{text}'")
        except Exception as error:
            raise fault(self.access, "write", self.location, error) from None

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: whoever made the staging table drops it."""


class _Counted:
    """Record batches, counted while they pass. Keeps the failure of the rows apart from failures of the database."""

    def __init__(self, first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> None:
        self.first: pa.RecordBatch | None = first
        self.others = others
        self.rows = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch, self.first = (self.first, None) if self.first is not None else (next(self.others), None)
        self.rows += batch.num_rows
        return batch


def _own_failure(error: Exception) -> Exception | None:
    """Returns the failure of Spark behind an error: the rows could not be computed, and the database is well."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, EOFError):
            return error
        seen = seen.__cause__ or seen.__context__
    return None


class DatabaseTables(DataSource):
    """The data source of one database. `source_of` makes a class for each."""

    access: ClassVar[Access]
    source_name: ClassVar[str]
    reader_type: ClassVar[type[Reader]] = Reader

    @classmethod
    def name(cls) -> str:
        return cls.source_name

    def reader(self, schema: StructType) -> DataSourceReader:
        return self.reader_type(self.access, schema, dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return Writer(self.access, dict(self.options))


def source_of(access: Access, *, marked: bool) -> type[DatabaseTables]:
    """Returns a data source for a database, under a name that says nothing. `marked` says that values are marked
    text."""
    cloudpickle.register_pickle_by_value(importlib.import_module(__name__))  # type: ignore[no-untyped-call]
    attributes = {
        "access": access,
        "source_name": f"tallybook_{secrets.token_hex(8)}",
        "reader_type": MarkedReader if marked else Reader,
    }
    return type("DatabaseTables", (DatabaseTables,), attributes)
