"""Describes how Spark must read the columns of a Parquet or ORC file to return the values that are in the file.

Spark trusts the metadata in a footer, drops digits below a microsecond, and reads old dates in a calendar that the file
may not use. `parquet_footer` and `orc_footer` inspect the files: they decide which type Spark reads, how to compute the
value from it, and which values cannot be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.expressions.compile import FIRST_DAY, LAST_DAY
from tallybook.rows import sql

GREGORIAN_DAY = -141427
"""1582-10-15 in days since 1970: from here on the Julian-Gregorian and the proleptic calendar agree."""
UNKNOWN_CALENDAR = "the file does not say which calendar it uses for days before 1582-10-15"


class UnreadableType(T.DataType):
    """A type that cannot be declared for a column, with its name and a hint for messages."""

    def __init__(
        self, name: str, hint: str = "declare the type that the data has, or write the data with the declared type"
    ) -> None:
        self.name = name
        self.hint = hint

    def simpleString(self) -> str:  # noqa: N802  # PySpark's name
        return self.name


@dataclass(frozen=True)
class ColumnReading:
    """How to read one column."""

    type: T.DataType
    """The type in the file."""
    read_as: T.DataType | None = None
    """The type that Spark reads, if it is another one. A string still has to be parsed."""
    value: str | None = None
    """SQL for the value, if it is not the column as Spark reads it."""
    doubt: str | None = None
    """SQL for the reason why a value cannot be trusted; NULL for good values. None if all values are good."""

    @property
    def is_text(self) -> bool:
        return isinstance(self.read_as, T.StringType)


@dataclass(frozen=True)
class FileReading:
    """How to read the wanted columns that a file has."""

    columns: tuple[tuple[str, ColumnReading], ...]
    options: tuple[tuple[str, str], ...] = ()
    """Options of Spark's reader."""
    names: frozenset[str] = field(default=frozenset(), compare=False)
    """All columns of the file."""

    @property
    def schema(self) -> T.StructType:
        """The columns that Spark reads."""
        columns = ((name, column.read_as or column.type) for name, column in self.columns)
        readable = ((name, type) for name, type in columns if not isinstance(type, T.NullType | UnreadableType))
        return T.StructType([T.StructField(name, type) for name, type in readable])


def wanted_columns(file: str, names: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """Returns the wanted columns that a file has. Raises SchemaMismatch if Spark cannot tell one from another."""
    alike = Counter(name.lower() for name in names)
    present = [name for name in dict.fromkeys(names) if name in set(wanted)]
    for name in present:
        if alike[name.lower()] > 1:
            twins = sorted({f"'{other}'" for other in names if other.lower() == name.lower()})
            what = f"the column {twins[0]} twice" if len(twins) == 1 else f"the columns {' and '.join(twins)}"
            raise fail(
                "SchemaMismatch", f"{file} has {what}", hint="rename one of them; names must differ in more than case"
            )
    return present


def first_doubt(*cases: tuple[str, str] | None) -> str | None:
    """Returns SQL for the reason of the first condition that is true, else NULL; None without conditions."""
    whens = " ".join(f"WHEN {case[0]} THEN {sql.text(case[1])}" for case in cases if case)
    return f"CASE {whens} END" if whens else None


def out_of_years(column: str, type: T.DataType) -> tuple[str, str]:
    """Returns the condition, and the reason, for a date or timestamp outside the years 1 to 9999."""
    if isinstance(type, T.DateType):
        low, high = f"DATE '{FIRST_DAY}'", f"DATE '{LAST_DAY}'"
    else:
        low, high = (
            timestamp_literal(f"{FIRST_DAY} 00:00:00", type),
            timestamp_literal(f"{LAST_DAY} 23:59:59.999999", type),
        )
    return f"NOT {column} BETWEEN {low} AND {high}", "it is outside the years 1 to 9999"


def timestamp_literal(text: str, type: T.DataType) -> str:
    """Returns a UTC time in SQL, of the type of the column to compare it with."""
    return f"TIMESTAMP_NTZ '{text}'" if isinstance(type, T.TimestampNTZType) else f"TIMESTAMP_LTZ '{text}Z'"
