"""What databases do differently: how they are reached, how names are quoted, and how values are read exactly.

A dialect is an object without state, chosen by the scheme of the url. The tables of a catalog are described by
`DatabaseTable`, and how to read a column by `ColumnQuery`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pyspark.sql import types as T

from tallybook.errors import RunError, fail
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.columns import ColumnType
from tallybook.model.datasource import DatabaseSource, name_parts
from tallybook.model.location import Location
from tallybook.storage.formats.database_source import INSTALL, Access, error_text

_DENIED = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|not permitted to log in"
    r"|FATAL: .*(role|database) .* does not exist"
)
"""What PostgreSQL says to a user it does not let in. A retry would not help, and might lock the account."""


@dataclass(frozen=True)
class DatabaseColumn:
    """A column as the catalog of a database describes it."""

    name: str
    type: str
    """The type as the database writes it, such as `numeric(12,2)`."""
    base: str
    """The type without modifiers and domains."""
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view."""

    sql: str
    """Its quoted name, for statements."""
    columns: tuple[DatabaseColumn, ...]
    key: str | None = None
    """Its primary key, if that is one column of whole numbers."""
    size: int = 0
    """Its size in bytes; 0 if that is not known."""
    is_view: bool = False

    def column(self, name: str) -> DatabaseColumn | None:
        """Returns the column with this name; None if the table has none."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class ColumnQuery:
    """How a query reads a column."""

    sql: str
    type: T.DataType
    doubt: str | None = None
    """SQL for the text of a value that the type cannot hold; NULL for good values. None if all values are good."""
    is_text: bool = False
    """True if the value is text that still has to be parsed."""


class Dialect:
    """A kind of database."""

    name: ClassVar[str]
    driver: ClassVar[str]
    """The package of the ADBC driver."""
    schemes: ClassVar[tuple[str, ...]]
    marks_values: ClassVar[bool] = False
    """True if queries return marked text, see `database_source.unmarked`."""

    def access(self, source: DatabaseSource, *, create: bool = False) -> Access:
        """Returns how to open the database, with the password of the credential. With `create`, a missing file is not
        an error: it is created."""
        raise NotImplementedError

    def exists(self, source: DatabaseSource) -> bool:
        """True if there is a database. A server that does not answer exists."""
        return True

    def quote(self, name: str) -> str:
        """Returns a name as an identifier of SQL. Raises SchemaMismatch if it cannot be one."""
        if "\0" in name:
            raise fail("SchemaMismatch", f"{name!r} cannot be a name in {self.name}: it has a NUL character")
        return '"' + name.replace('"', '""') + '"'

    def qualified(self, target: str) -> str:
        """Returns the quoted name of the table that a location names."""
        return ".".join(map(self.quote, name_parts(target)))

    def find(self, cursor: Any, target: str) -> DatabaseTable | None:
        """Returns the table or view of this name; None if there is none."""
        raise NotImplementedError

    def tables(self, cursor: Any, schema: str | None) -> list[str]:
        """Returns the names of all tables and views of a schema, by default of those that need no qualification."""
        raise NotImplementedError

    def cascades(self, cursor: Any, table: DatabaseTable) -> tuple[str, str] | None:
        """Returns a table whose rows change if rows of this one are deleted, and the name of its foreign key; None if
        there is none."""
        return None

    def has_triggers(self, cursor: Any, table: DatabaseTable) -> bool:
        """True if triggers or rules may keep rows of the table from being inserted or deleted."""
        raise NotImplementedError

    def query_of(self, column: DatabaseColumn, declared: ColumnType) -> ColumnQuery:
        """Returns how to read a column whose values become values of the declared type."""
        raise NotImplementedError

    def valid_at(self, column: DatabaseColumn, comparison: str, day: date) -> str | None:
        """Returns SQL that compares a bound of validity with a day; None if the filter is left to Spark."""
        return None

    def in_values(self, column: DatabaseColumn, values: Sequence[str]) -> str | None:
        """Returns SQL that is true for these texts; None if the column is not text."""
        raise NotImplementedError

    def snapshot(self, cursor: Any) -> str | None:
        """Begins a transaction and returns a name under which others can read the same rows; None if they cannot."""
        return None

    def setup(self, snapshot: str | None, table: DatabaseTable) -> list[str]:
        """Returns the statements that begin the transaction in which a query reads."""
        return []

    def state(self, cursor: Any, table: DatabaseTable) -> Mapping[str, Any]:
        """Returns what tells the rows of a table from other rows: their number, and a checksum if it is cheap."""
        raise NotImplementedError


def literal(text: str) -> str:
    """Returns a text as a literal of standard SQL, without backslash escapes."""
    return "'" + text.replace("'", "''") + "'"


DIALECTS: dict[str, Dialect] = {}
"""The dialects by the schemes of their urls."""


def add_dialect(dialect: Dialect) -> None:
    """Registers a dialect under its schemes."""
    DIALECTS.update(dict.fromkeys(dialect.schemes, dialect))


def source_of(location: Location) -> DatabaseSource:
    """Returns the datasource of a table in a database."""
    assert isinstance(location.source, DatabaseSource), "only databases have this format"
    return location.source


def dialect_of(source: DatabaseSource) -> Dialect:
    """Returns the dialect of a url. Raises DataLoadError if it has none, or its driver is not installed."""
    scheme = urlsplit(source.options.url).scheme.lower()
    dialect = DIALECTS.get(scheme)
    if dialect is None:
        raise fail(
            "DataLoadError",
            f"datasource '{source.id}' has a url that begins with '{scheme}:', which no driver here can open",
            hint="use postgresql://user@host/database, sqlite:///file, or a jdbc: url with its driver in `spark.jars`",
        )
    if importlib.util.find_spec(dialect.driver) is None:
        raise fail(
            "DataLoadError",
            f"datasource '{source.id}' needs the ADBC driver of {dialect.name}, which is not installed",
            hint=INSTALL,
        )
    return dialect


@contextmanager
def opened(
    location: Location, problem: str = "DataLoadError", *, create: bool = False
) -> Iterator[tuple[Dialect, Any]]:
    """Opens the database of a location for a few statements. Errors of the database become problems."""
    source = source_of(location)
    dialect = dialect_of(source)
    access = dialect.access(source, create=create)
    with database_errors(location, access, problem), access.open() as connection, connection.cursor() as cursor:
        yield dialect, cursor


@contextmanager
def database_errors(location: Location, access: Access, problem: str) -> Iterator[None]:
    """Turns errors of ADBC in the block into a problem of the location, without the password."""
    from adbc_driver_manager import Error

    try:
        yield
    except Error as error:
        raise refused(location, access, problem, error) from None


def refused(location: Location, access: Access, problem: str, error: Exception) -> RunError:
    """Returns the problem for an error of a database."""
    from adbc_driver_manager import OperationalError

    verb = "written" if problem == "WriteFailed" else "read"
    text = access.hide(error_text(error))
    denied = _DENIED.search(text) is not None
    lost = isinstance(error, OperationalError) and not denied
    secret = source_of(location).credential_ref
    hint = f"check the url of datasource '{location.source.id}', and its secret: " + (
        f"{secret}" if secret else "it has no `credential_ref`"
    )
    message = f"{location} could not be {verb}: {text}"
    return fail(problem, message, hint=hint if denied else None, cause=UNAVAILABLE if lost else None)
