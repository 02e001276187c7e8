"""Writes tables of SQLite. Spark stages the rows as Parquet files next to the database, the driver inserts them.

SQLite has one writer at a time, so the tasks of Spark could not write at once. The staging folder is locked, recovered
and removed like that of an output of files, see `storage.publish`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.storage.formats.database_dialect import DatabaseTable, opened, source_of
from tallybook.storage.formats.database_sqlite import has_text_affinity, sqlite_file
from tallybook.storage.formats.database_write import Publishing
from tallybook.storage.formats.parquet import PARQUET
from tallybook.storage.output import Output
from tallybook.storage.publish import clear, locked, sibling
from tallybook.storage.stage import Written, stage

_EXACT_DIGITS = 15
"""A binary floating-point number has every decimal with this many digits exactly."""
_STAGED = "tallybook_staged"
_TYPES: dict[type[T.DataType], str] = {
    T.StringType: "TEXT",
    T.LongType: "INTEGER",
    T.IntegerType: "INTEGER",
    T.BooleanType: "BOOLEAN",
    T.DateType: "DATE",
    T.TimestampType: "TIMESTAMP",
    T.TimestampNTZType: "TIMESTAMP",
}


def write_sqlite(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
    """Writes the rows as one transaction. A retry after the commit writes nothing and returns what was committed."""
    file = sqlite_file(source_of(location))
    with locked(file):
        staged = sibling(file, f"{output.name}-{uuid4().hex}")
        try:
            stage(PARQUET, spark, frame, location, str(staged))
            with opened(location, "WriteFailed", create=True) as (dialect, cursor):
                return SQLitePublishing(dialect, cursor, location, output, frame.schema, staged).publish()
        finally:
            clear(staged)


@dataclass
class SQLitePublishing(Publishing):
    """An output that is staged as Parquet files."""

    staged: Path

    @property
    def staged_sql(self) -> str:
        return f"temp.{_STAGED}"

    def begin(self) -> None:
        """Copies the files into a temporary table of the connection, then begins the transaction."""
        self.cursor.adbc_ingest(_STAGED, self._batches(), mode="create", temporary=True)
        self.cursor.execute("BEGIN IMMEDIATE")

    def _batches(self) -> pa.RecordBatchReader:
        import pyarrow.dataset as ds  # it imports pandas, for which a run without a database need not wait

        files = sorted(str(file) for file in self.staged.glob("*.parquet"))
        schema = pa.schema([(field.name, _stored_type(field.dataType)) for field in self.schema.fields])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in ds.dataset(files, format="parquet").to_batches() if files else ():
                columns = [_stored(batch.column(field.name), field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def create_table(self) -> int:
        columns = ", ".join(f"{self.dialect.quote(field.name)} {_type(field)}" for field in self.schema.fields)
        self.cursor.execute(f"CREATE TABLE {self.dialect.qualified(self.location.target)} ({columns})")
        table = self.dialect.find(self.cursor, self.location.target)
        assert table is not None, "it was just created"
        return self.insert(table)

    def insert(self, table: DatabaseTable) -> int:
        names = ", ".join(map(self.dialect.quote, self.schema.names))
        for field in self.schema.fields:
            column = table.column(field.name)
            if isinstance(field.dataType, T.DecimalType) and column and not has_text_affinity(column):
                self._refuse_inexact(field.name, column.type)
        self.cursor.execute(f"INSERT INTO {table.sql} ({names}) SELECT {names} FROM {self.staged_sql}")
        self.cursor.execute(f"SELECT changes(), count(*) FROM {self.staged_sql}")
        inserted, staged = self.cursor.fetchone()
        self.refuse_lost_rows(staged, inserted)
        return int(inserted)

    def _refuse_inexact(self, column: str, type: str) -> None:
        name = self.dialect.quote(column)
        digits = f"trim(replace(replace({name}, '-', ''), '.', ''), '0')"
        self.cursor.execute(f"SELECT {name} FROM {self.staged_sql} WHERE length({digits}) > {_EXACT_DIGITS} LIMIT 1")
        if found := self.cursor.fetchone():
            raise fail(
                "WriteFailed",
                f"{self.location} could not be written: column '{column}' has the value {found[0]}, which cannot be "
                f"stored exactly as {type or 'a number'}: SQLite keeps {_EXACT_DIGITS} digits",
                hint="create the table yourself with the type TEXT for this column",
            )


def _type(field: T.StructField) -> str:
    type = field.dataType
    if isinstance(type, T.DecimalType):
        return f"DECIMAL({type.precision},{type.scale})"
    name = _TYPES.get(type.__class__)
    if name is None:
        raise fail("WriteFailed", f"column '{field.name}' is {type.simpleString()}, which databases cannot hold")
    return name


def _stored_type(type: T.DataType) -> pa.DataType:
    """SQLite has whole numbers and text; decimals, dates and timestamps are text."""
    whole = isinstance(type, T.IntegerType | T.LongType | T.BooleanType)
    return pa.int64() if whole else pa.string()


def _stored(column: pa.Array, type: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return pc.strftime(column.cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
    return column.cast(type)
