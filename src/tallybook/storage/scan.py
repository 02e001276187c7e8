"""What all readers share: the columns to read, rows as Spark reads them, and the file and position of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.compile import column_named
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, VALIDITY_COLUMNS, ColumnType
from tallybook.model.dataset import Table
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import raising_sql
from tallybook.storage.notation import Notation

FILE, NAME, ROW, START = map(sql.internal, ("file", "name", "row", "start"))
ORIGIN = {
    FILE: "_metadata.file_path",
    NAME: "_metadata.file_name",
    START: "_metadata.file_block_start",
    ROW: "_metadata.row_index",
}
"""SQL for the file and row that Spark is reading."""
_LISTED, _ORDINAL = map(sql.internal, ("listed", "ordinal"))
_ROW_BITS = 40
_SEARCHED_FILES = 32
"""The most files among which a row's file is searched in a map; for more files a broadcast join is faster. (Nested
comparisons would be fastest once the JVM has compiled them, but for ten million rows that takes half of the run.)"""


@dataclass(frozen=True)
class Field:
    """A column to read from the data."""

    name: str
    physical: str
    type: ColumnType
    nullable: bool = True
    required: bool = False
    """True if data without it is refused. Other system columns are read if they exist."""
    declared: bool = False
    periods: tuple[str, ...] | None = None
    """For the period column, the periods whose rows are needed; None for all. A format may leave out other rows."""
    as_of: date | None = None
    """For the bounds of validity, the day on which rows must be valid; None for all. A format may leave out others."""


@dataclass(frozen=True)
class Part:
    """The rows of a table that a run needs. A format may leave out others; who reads them filters again."""

    periods: tuple[str, ...] | None = None
    as_of: date | None = None


ALL = Part()


def fields_of(table: Table, part: Part = ALL) -> tuple[Field, ...]:
    """Returns the declared columns, then the system columns that the data of this table may have."""
    declared = tuple(Field(c.name, c.physical, c.type, c.nullable, required=True, declared=True) for c in table.columns)
    physical = {PERIOD: table.period_column, VALID_FROM: table.valid_from_column, VALID_TO: table.valid_to_column}
    system = tuple(
        Field(
            name,
            physical.get(name, name),
            type,
            required=name in VALIDITY_COLUMNS,
            periods=part.periods if name == PERIOD else None,
            as_of=part.as_of if name in VALIDITY_COLUMNS else None,
        )
        for name, type in table.system_types.items()
    )
    return declared + system


@dataclass(frozen=True)
class Scan:
    """Rows as Spark reads them from files that are read alike, or from a table."""

    source: DataFrame
    values: Mapping[str, str]
    """SQL for each value of a row: the physical columns, FILE, and START, ROW and POSITION if the format has them. A
    select should take only those that it needs, because Spark analyses each one."""
    types: Mapping[str, T.DataType]
    """The types of the wanted columns that the data has."""
    column_names: frozenset[str]
    """All columns of the data."""
    files: tuple[str, ...] = ()
    text: Mapping[str, Notation] = field(default_factory=dict)
    """The columns that are text and still have to be parsed, with the notation of their values."""
    broken: Column | None = None
    """The text of a row that cannot be read as a whole; NULL on good rows."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """For a column, the value that says why it cannot be trusted; NULL on good rows."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """For a column that is in the file and in the names of its folders, the value with the text of the folder."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """For a column of a sheet, its address without the row, such as `Sheet1!C`."""

    @cached_property
    def frame(self) -> DataFrame:
        """All values under their names."""
        return sql.select(self.source, self.values)


def quoted(name: str) -> Column:
    """Returns a column by its exact name, with any characters in it."""
    return column_named(name)


def positioned(
    spark: SparkSession, source: DataFrame, values: Mapping[str, str], ordinals: Mapping[str, int]
) -> tuple[DataFrame, dict[str, str]]:
    """Adds POSITION to values with FILE, NAME and ROW: `file ordinal << 40 | row index`, independent of parallelism.

    A row of a file without an ordinal fails the job, because a wrong position would be a wrong row id. Files are
    identified by their names if those are unique, which is faster: all paths begin with the same long folder.
    """
    names = {file.rsplit("/", 1)[-1]: ordinal for file, ordinal in ordinals.items()}
    key = values[NAME if len(names) == len(ordinals) else FILE]
    ordinals = names if len(names) == len(ordinals) else ordinals
    if len(ordinals) <= 1:
        ordinal = f"{next(iter(ordinals.values()), 0)}L"
    elif len(ordinals) <= _SEARCHED_FILES:
        pairs = ", ".join(f"{sql.text(file)}, {ordinal}L" for file, ordinal in ordinals.items())
        ordinal = _listed(f"try_element_at(map({pairs}), {key})", key)
    else:
        columns = f"{sql.name(_LISTED)} string, {sql.name(_ORDINAL)} bigint"
        listed = spark.createDataFrame(list(ordinals.items()), columns)
        source = source.join(F.broadcast(listed), F.expr(f"{key} = {sql.name(_LISTED)}"), "left")
        ordinal = _listed(sql.name(_ORDINAL), key)
    return source, {**values, POSITION: f"shiftleft({ordinal}, {_ROW_BITS}) | {values[ROW]}"}


def _listed(ordinal: str, key: str) -> str:
    return f"coalesce({ordinal}, {raising_sql('InternalError', unlisted_file=key)})"
