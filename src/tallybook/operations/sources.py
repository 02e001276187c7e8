"""Sources: rows of other datasets. Joins of an update and appends name them with the same keys.

`Source` is what YAML says, `bind_source` checks it, and `SourceRows.frame` builds the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tallybook.errors import Problem
from tallybook.expressions.check import Typed, columns_read
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.base import Expression, NonEmpty
from tallybook.model.columns import RESERVED, ColumnType, why_reserved
from tallybook.model.dataset import DatasetRef
from tallybook.model.relative_period import RelativePeriod
from tallybook.operations.binding import Binding, check_identifier, type_of_new_column
from tallybook.operations.grouping import BoundGrouping, Grouping, bind_grouping, grouped
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.operations.source_time import bind_time
from tallybook.source import path_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tallybook.operations.base import BuildContext, KnownTables

Path = tuple[str | int, ...]


class Source(DatasetRef):
    """Rows of another dataset: which of them, and whether they are aggregated first."""

    selector: Expression | None = None
    aggregation: Grouping | None = None
    period: RelativePeriod | None = None
    as_of: NonEmpty | None = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """The texts in which named selectors may be used."""
        return () if self.selector is None else (self.selector,)


@dataclass(frozen=True)
class SourceRows:
    """The checked rows of a source: those of a table that meet a condition, or one row for each group of them."""

    table: SourceTable
    condition: Typed | None = None
    grouping: BoundGrouping | None = None
    selector_path: str = field(default="selector", compare=False)
    """The path of the condition inside the operation. Rows are the same wherever they are written."""
    grouping_path: str = field(default="aggregation", compare=False)
    """The path of the aggregation inside the operation."""

    @property
    def expressions(self) -> dict[str, Typed]:
        """Everything it evaluates, by the path of its text inside the operation. All of it reads the table alone."""
        condition = {} if self.condition is None else {self.selector_path: self.condition}
        return condition | (self.grouping.expressions(self.grouping_path) if self.grouping else {})

    @cached_property
    def columns(self) -> Mapping[str, ColumnType]:
        """The business columns of the rows."""
        if self.grouping is None:
            return self.table.table.business_types
        keys = {key.column: key.type for key in self.grouping.keys if key.column not in RESERVED}
        return keys | {name: typed.type for name, typed in self.grouping.results.items()}

    def table_columns(self, wanted: Iterable[str] = ()) -> frozenset[str]:
        """The columns of the table that it reads to give the wanted columns of its rows."""
        read = {column.column for typed in self.expressions.values() for column in columns_read(typed)}
        keys = [key.column for key in self.grouping.keys] if self.grouping else wanted
        return frozenset(read.union(keys))

    def are_unique_by(self, columns: Sequence[str] | None, known: KnownTables) -> bool:
        """True if it is known that no two of the rows have the same values in some columns. None stands for conditions
        that are more than equalities of columns."""
        if columns is None:
            return False
        if self.grouping is not None:
            return {key.column for key in self.grouping.keys} <= set(columns)
        return known.has_unique_keys(self.table, columns)

    def origins(self, column: str) -> frozenset[str]:
        """The columns of the table that the values of one of its columns are computed from."""
        result = self.grouping.results.get(column) if self.grouping else None
        return frozenset({column} if result is None else {read.column for read in columns_read(result)})

    def scope_table(self, alias: str) -> ScopeTable:
        """Returns the rows as expressions of an operation that joins them see them."""
        if self.grouping is None:
            return self.table.scope_table(alias, joined=True)
        hidden = {key.column: key.type for key in self.grouping.keys if key.column in RESERVED}
        return ScopeTable(alias, self.columns, hidden, joined=True, open=self.table.open)

    @property
    def per_expression(self) -> dict[str, SourceRows]:
        """The rows reduced to one of their expressions each, by path. Results keep the condition."""
        chosen = replace(self, grouping=None)
        groupings = self.grouping.per_expression(self.grouping_path) if self.grouping else {}
        return dict.fromkeys(chosen.expressions, chosen) | {
            path: replace(self, grouping=one) for path, one in groupings.items()
        }

    def frame(
        self, build: BuildContext, types: Mapping[str, ColumnType] | None = None, *, spread: bool = False
    ) -> DataFrame:
        """Builds the rows. Results of an aggregation get the given types, by default their own. One task processes a
        small table, unless its rows are `spread`."""
        rows = build.load(self.table)
        if build.is_small(self.table) and (self.grouping is not None or not spread):
            rows = rows.coalesce(1)
        if self.condition is not None:
            rows = rows.filter(build.compiler.column(self.condition))
        return rows if self.grouping is None else grouped(rows, self.grouping, types or self.columns, build.compiler)


@dataclass(frozen=True)
class JoinedTable:
    """Rows joined to the working rows: their columns are read as `alias.column`."""

    alias: str
    rows: SourceRows
    on: Typed
    valid: Typed | None = None
    """For `as_of` with a date of the working row: true if a joined row is valid on that date."""

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """What must be true of a working row and a row that is joined to it."""
        return (self.on,) if self.valid is None else (self.on, self.valid)

    @property
    def source(self) -> SourceTable:
        """The table that the rows come from."""
        return self.rows.table


def bind_source(
    source: Source,
    binding: Binding,
    *path: str | int,
    alias: str | None = None,
    selector_path: Path | None = None,
    grouping_path: Path | None = None,
) -> SourceRows | None:
    """Checks a source; None if its dataset or its groups are unknown.

    Its expressions see the columns of the source only. They can be read by the `alias`, by default by the name of
    the table. `selector_path` and `grouping_path` say where the two keys are written if not inside the source.
    """
    table = binding.dataset(source, *path)
    if table is None:
        return None
    table = bind_time(source, table, binding, *path, joined=alias is not None)
    at_selector, at_grouping = selector_path or (*path, "selector"), grouping_path or (*path, "aggregation")
    own = table.scope_table(alias or table.table.name, joined=False)
    scope = Scope((own,), unreadable=(_working_rows(binding.before, own.name),))
    condition = binding.condition(source.selector, scope, *at_selector)
    grouping = None
    if source.aggregation is not None:
        grouping = bind_grouping(source.aggregation, scope, binding, *at_grouping)
        if grouping is None:
            return None
        paths = column_paths(source.aggregation, at_grouping)
        for name in grouping.results:
            if reason := why_reserved(name):
                binding.report("SystemColumn", f"{reason} and cannot be set", *paths[name], hint="choose another name")
    return SourceRows(table, condition, grouping, path_text(at_selector), path_text(at_grouping))


def bind_joined_source(source: Source, binding: Binding, *path: str | int, alias: str) -> SourceRows | None:
    """Checks a source whose columns expressions read as `alias.column`; its results need names and types of their
    own."""
    rows = bind_source(source, binding, *path, alias=alias)
    if rows is None or rows.grouping is None:
        return rows
    assert source.aggregation is not None
    complete = True
    for index, aggregation in enumerate(source.aggregation.aggregations):
        here = (*path, "aggregation", "aggregations", index)
        typed = rows.grouping.results.get(aggregation.column)
        type_of_new_column(binding, aggregation.column, typed, *here)
        complete &= check_identifier(binding, aggregation.column, *here, "column") and typed is not None
    return rows if complete else replace(rows, table=replace(rows.table, open=True))


def column_paths(aggregation: Grouping | None, path: Path) -> dict[str, Path]:
    """Returns the path at which each result column of an aggregation is named."""
    if aggregation is None:
        return {}
    keys = {name.rpartition(".")[2]: (*path, "group_by", i) for i, name in enumerate(aggregation.group_by)}
    return keys | {one.column: (*path, "aggregations", i, "column") for i, one in enumerate(aggregation.aggregations)}


def _working_rows(before: WorkingSchema, source: str) -> ScopeTable:
    """The working rows as a table that the expressions of a source cannot read."""
    reason = Problem(
        "ColumnNotFound",
        f"it is a column of the working rows, and a source reads only its own columns, those of '{source}'",
        hint="move a condition on working rows to the `selector` of the operation, or to the `on` of a join",
    )
    return ScopeTable(before.table, before.columns, missing=reason)
