"""Writes tables of databases: the rows are staged where nobody reads them, then one transaction publishes them.

The transaction deletes what the output replaces, inserts the staged rows, and adds the mark of the output. A table that
exists stays what it is: keys, types, indexes and grants are kept. A reader sees the old rows or the new ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from tallybook.errors import RunError, did_you_mean, fail
from tallybook.model.datasource import name_parts
from tallybook.model.location import Location
from tallybook.storage.formats.database_dialect import DatabaseTable, Dialect, literal
from tallybook.storage.formats.database_marks import MARKS, Marks
from tallybook.storage.output import Output
from tallybook.storage.stage import Written


@dataclass
class Target:
    """The table of an output, and what the database knows of its earlier outputs."""

    dialect: Dialect
    cursor: Any
    location: Location
    output: Output

    @property
    def schemas(self) -> list[str]:
        """The schema of the table, if the location names one."""
        return name_parts(self.location.target)[:-1]

    @property
    def marks(self) -> Marks:
        """The marks of the table."""
        marks = ".".join(map(self.dialect.quote, [*self.schemas, MARKS]))
        return Marks(self.cursor, marks, name_parts(self.location.target)[-1])

    @property
    def has_marks(self) -> bool:
        """True if an output has ever written to the schema of the table."""
        name = self.location.source.table_name(self.schemas[0] if self.schemas else None, MARKS)
        return self.dialect.find(self.cursor, name) is not None

    def is_written(self) -> bool:
        """True if the output has been written."""
        return self.has_marks and self.marks.rows_of(self.output) is not None

    def check(self) -> None:
        """Raises WriteFailed if the table forbids the output. It changes nothing."""
        table = self.dialect.find(self.cursor, self.location.target)
        if table is not None and not self.is_written():
            self.refuse_kind(table)
            self.refuse_cascade(table)
            if self.output.mode == "overwrite" and not (self.has_marks and self.marks.owns_table):
                self.refuse_foreign_rows(table, ())

    def refuse_kind(self, table: DatabaseTable) -> None:
        """Raises WriteFailed for a view, and for any table if the mode of the output is error."""
        if table.is_view:
            raise fail("WriteFailed", f"{self.location} is a view, which cannot be written", hint="write to a table")
        if self.output.mode == "error":
            raise fail(
                "WriteFailed",
                f"{self.location} already exists",
                hint="the output has `mode: error`; use `overwrite` or `append` to write it anyway",
            )

    def refuse_cascade(self, table: DatabaseTable) -> None:
        """Raises WriteFailed if the output deletes rows and a foreign key would then change rows of another table."""
        cascade = None if self.output.mode == "append" else self.dialect.cascades(self.cursor, table)
        if cascade is not None:
            referring, key = cascade
            raise fail(
                "WriteFailed",
                f"{self.location} cannot be replaced: to delete its rows would change rows of {referring}, whose "
                f"foreign key {key} says so (ON DELETE)",
                hint="remove ON DELETE CASCADE, SET NULL or SET DEFAULT from that foreign key, or write to another "
                "table",
            )

    def refuse_foreign_rows(self, table: DatabaseTable, periods: Sequence[str]) -> None:
        """Raises WriteFailed if the output would delete rows, all or those of periods."""
        if self.output.mode == "append":
            return
        self.cursor.execute(f"SELECT count(*) FROM {table.sql}{self.of_periods(periods)}")
        rows = self.cursor.fetchone()[0]
        if rows:
            raise _foreign_rows(self.location, rows, periods)

    def of_periods(self, periods: Sequence[str]) -> str:
        """Returns the WHERE clause for the rows of periods; nothing if there are none."""
        if not periods or self.output.periods is None:
            return ""
        column = self.dialect.quote(self.output.periods.column)
        return f" WHERE {column} IN ({', '.join(map(literal, periods))})"


@dataclass
class Publishing(Target):
    """An output whose rows are staged. Subclasses know how a database does each step."""

    schema: T.StructType

    @abstractmethod
    def begin(self) -> None:
        """Begins a transaction that no other writer of the table can overlap."""

    @abstractmethod
    def create_table(self) -> int:
        """Creates the table with the staged rows, with exact types. Returns their number."""

    @abstractmethod
    def insert(self, table: DatabaseTable) -> int:
        """Inserts the staged rows into the table. Returns their number."""

    @property
    @abstractmethod
    def staged_sql(self) -> str:
        """The quoted name of the table with the staged rows."""

    def staged_periods(self, column: str) -> list[str | None]:
        """Returns the periods of the staged rows."""
        self.cursor.execute(f"SELECT DISTINCT {self.dialect.quote(column)} FROM {self.staged_sql}")
        return [period for (period,) in self.cursor.fetchall()]

    def publish(self) -> Written:
        """Publishes the staged rows in one transaction. If the output has been written, nothing changes."""
        self.begin()
        try:
            written = self._publish()
        except BaseException:
            with suppress(Exception):  # a lost connection rolls back, and what was raised first is the reason
                self.cursor.execute("ROLLBACK")
            raise
        self.cursor.execute("COMMIT")
        return written

    def _publish(self) -> Written:
        marks, output, columns = self.marks, self.output, self.schema.names
        marks.create()
        rows = marks.rows_of(output)
        if rows is not None:
            return Written(rows, tuple(columns), periods=marks.periods_of(output))
        table = self.dialect.find(self.cursor, self.location.target)
        periods = () if output.periods is None else output.periods.given(self.staged_periods(output.periods.column))
        owns = table is None or marks.owns_table or self._is_empty(table)
        if table is not None:
            self.refuse_kind(table)
            self.refuse_cascade(table)
            self._check_columns(table)
            if not owns and not (periods and marks.periods.issuperset(periods)):
                self.refuse_foreign_rows(table, periods)
        marks.refuse_superseded(output, self.location)
        if table is None:
            rows = self.create_table()
        else:
            if output.mode != "append":
                self._delete(table, self.of_periods(periods))
            rows = self.insert(table)
        marks.add(output, rows, owns_table=owns, periods=periods)
        output.guard.check()
        return Written(rows, tuple(columns), periods=periods)

    def _delete(self, table: DatabaseTable, where: str) -> None:
        """Deletes rows. Raises WriteFailed if a trigger keeps some: the new rows would be added to them."""
        self.cursor.execute(f"DELETE FROM {table.sql}{where}")
        if self.dialect.has_triggers(self.cursor, table):
            self.cursor.execute(f"SELECT count(*) FROM {table.sql}{where}")
            if rows := self.cursor.fetchone()[0]:
                raise self._triggered(f"keeps {_rows(rows)} that the output replaces")

    def refuse_lost_rows(self, staged: int, inserted: int) -> None:
        """Raises WriteFailed if fewer rows were inserted than staged."""
        if inserted != staged:
            raise self._triggered(f"inserts {inserted:,} of the {_rows(staged)} of the output")

    def _triggered(self, does: str) -> RunError:
        return fail(
            "WriteFailed",
            f"{self.location} could not be written: a trigger or rule of the table {does}",
            hint="an output is written completely or not at all: change the trigger, or write to another table",
        )

    def _is_empty(self, table: DatabaseTable) -> bool:
        self.cursor.execute(f"SELECT 1 FROM {table.sql} LIMIT 1")
        return self.cursor.fetchone() is None

    def _check_columns(self, table: DatabaseTable) -> None:
        names = [column.name for column in table.columns]
        for name in self.schema.names:
            if name not in names:
                raise fail(
                    "WriteFailed",
                    f"{self.location} has no column '{name}', which the output writes",
                    hint=did_you_mean(name, names) or "add the column to the table, or leave it out of the output",
                )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _foreign_rows(location: Location, rows: int, periods: Sequence[str]) -> RunError:
    of = f" of {', '.join(periods)}" if periods else ""
    it = "it" if rows == 1 else "them"
    return fail(
        "WriteFailed",
        f"{location} has {_rows(rows)}{of} that this product did not write, and the output would delete {it}",
        hint="an output replaces only its own rows: write to another table, use mode append, or delete these rows "
        "yourself first",
    )
