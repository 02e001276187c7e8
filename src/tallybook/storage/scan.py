"""What readers share: the columns they look for, rows as Spark reads them, and where each row came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.compile import column_named
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, VALIDITY_COLUMNS, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.location import Location, local_target
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import raising_sql

FILE, NAME, ROW, START = map(sql.internal, ("file", "name", "row", "start"))
ORIGIN = {
    FILE: "_metadata.file_path",
    NAME: "_metadata.file_name",
    START: "_metadata.file_block_start",
    ROW: "_metadata.row_index",
}
"""Where Spark says what row of which file it is reading."""
_LISTED, _ORDINAL = map(sql.internal, ("listed", "ordinal"))
_ROW_BITS = 40
_SEARCHED_FILES = 32
"""Up to here a row's file is looked for among all of them; for more files a broadcast join is quicker. (Nested
comparisons would be quickest, once the JVM has compiled them: which for ten million rows takes it half of the run.)"""


@dataclass(frozen=True)
class Field:
    """A column looked for in the data."""

    name: str
    physical: str
    type: ColumnType
    nullable: bool = True
    required: bool = False
    """True if a location without it is refused; the other system columns are read where they exist."""
    declared: bool = False


def fields_of(table: Table) -> tuple[Field, ...]:
    """The declared columns, then the system columns that rows of this table may bring along."""
    declared = tuple(Field(c.name, c.physical, c.type, c.nullable, required=True, declared=True) for c in table.columns)
    physical = {PERIOD: table.period_column, VALID_FROM: table.valid_from_column, VALID_TO: table.valid_to_column}
    system = tuple(
        Field(name, physical.get(name, name), type, required=name in VALIDITY_COLUMNS)
        for name, type in table.system_types.items()
    )
    return declared + system


@dataclass(frozen=True)
class Scan:
    """Rows as Spark reads them from `source`; `values` are its columns, in SQL: physical ones, FILE, and where the
    format knows them START, ROW and POSITION. One select takes those that it needs, because Spark analyses each one.

    `types` holds the columns looked for that are there; those in `text` are still to be parsed. `known` are the names
    of all columns there. `broken` says, as text, what is wrong with a row as a whole, and is NULL on good rows.
    `doubts` names for a column the value that says why it cannot be trusted, and is NULL on good rows.
    """

    source: DataFrame
    values: Mapping[str, str]
    types: Mapping[str, T.DataType]
    known: frozenset[str]
    files: tuple[str, ...] = ()
    text: frozenset[str] = frozenset()
    broken: Column | None = None
    doubts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    """For a column that is in the file and in the names of its folders, the value with the text of the folder."""

    @cached_property
    def frame(self) -> DataFrame:
        """All values under their names."""
        return sql.select(self.source, self.values)


def quoted(name: str) -> Column:
    """A column by its exact name, whatever characters it has."""
    return column_named(name)


def local_path(location: Location) -> str | None:
    """The path on this machine's file system, or None for any other url."""
    return local_target(location.target)


def positioned(
    spark: SparkSession, source: DataFrame, values: Mapping[str, str], ordinals: Mapping[str, int]
) -> tuple[DataFrame, dict[str, str]]:
    """Add POSITION to values with FILE, NAME and ROW: `file ordinal << 40 | row index`, whatever the parallelism.

    A row of a file that is not among the known ones fails the job: a wrong position would be a wrong row id. Files are
    identified by their names where those are unique: they differ early, while paths begin with the same long folder.
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
        known = spark.createDataFrame(list(ordinals.items()), columns)
        source = source.join(F.broadcast(known), F.expr(f"{key} = {sql.name(_LISTED)}"), "left")
        ordinal = _listed(sql.name(_ORDINAL), key)
    return source, {**values, POSITION: f"shiftleft({ordinal}, {_ROW_BITS}) | {values[ROW]}"}


def _listed(ordinal: str, key: str) -> str:
    return f"coalesce({ordinal}, {raising_sql('InternalError', unlisted_file=key)})"
