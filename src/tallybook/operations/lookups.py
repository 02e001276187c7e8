"""The tables that stand beside the working rows: the lookups an operation reads, and the joins of an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.reads import columns_read, tables_read
from tallybook.expressions.tree import Call, ColumnName
from tallybook.operations.base import Applying, Step
from tallybook.operations.schema import LookupTable, SourceTable, WorkingSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def lookup_condition(lookup: LookupTable, schema: WorkingSchema) -> Typed:
    """The pairs of a lookup as the condition a runtime join would have; checked when the dataset was."""
    pairs = [
        Call("=", (ColumnName((schema.table, own)), ColumnName((lookup.alias, theirs))), operator=True)
        for own, theirs in lookup.pairs
    ]
    typed = Checker(schema.scope()).check(Call("AND", tuple(pairs), operator=True))
    assert typed is not None, f"lookup {lookup.alias} was not checked"
    return typed


@dataclass(frozen=True)
class Beside:
    """A table whose rows stand beside the working ones: a lookup, or a join of one update."""

    alias: str
    source: SourceTable
    on: Typed


def lookups_of(step: Step) -> list[Beside]:
    """The lookups a step reads."""
    return [Beside(each.alias, each.source, lookup_condition(each, step.before)) for each in step.lookups]


def with_lookups(frame: DataFrame, step: Step, applying: Applying) -> DataFrame:
    """The frame with the columns of every lookup the step reads."""
    return attached(frame, step, lookups_of(step), applying)


def attached(frame: DataFrame, step: Step, tables: Sequence[Beside], applying: Applying) -> DataFrame:
    """The frame with the columns of each table that the step reads. Those the selector depends on come first."""
    from tallybook.rows.joins import Join, attach

    first = _decisive(step.selector, tables)
    there: set[str] = set()
    for table in sorted(tables, key=lambda table: table.alias not in first):
        join = Join.on(table.on, table.alias, _columns_read(step, table.alias))
        counts = _counted(step, applying, there)
        frame = attach(frame, applying.load(table.source), join, counts, applying.compiler, step.seq)
        there.add(table.alias)
    return frame


def _decisive(selector: Typed | None, tables: Sequence[Beside]) -> set[str]:
    """The tables on whose rows it depends whether a row is selected. A condition reads earlier tables only."""
    found = set() if selector is None else tables_read(selector)
    for table in reversed(tables):
        found |= tables_read(table.on) if table.alias in found else set()
    return found


def _columns_read(step: Step, alias: str) -> list[str]:
    """The columns of a table that anything but its own condition reads."""
    own = step.join_condition(alias)
    read = (column for typed in step.expressions.values() if typed is not own for column in columns_read(typed))
    return list(dict.fromkeys(column.column for column in read if column.table == alias))


def _counted(step: Step, applying: Applying, there: set[str]) -> Column | None:
    """The rows whose match is asked for, None for all: the selected ones; every active one as long as the selector
    reads a table that does not stand beside the rows yet."""
    readable = step.selector is not None and tables_read(step.selector) <= there
    return applying.chosen(step.selector if readable else None)


def with_values(beside: DataFrame, values: Mapping[str, Column], step: Step) -> DataFrame:
    """The working dataset after a step that sets columns, without what it has joined beside them.

    Where nothing was joined only what changes is named: Spark analyses every column of a select, and there may be
    hundreds.
    """
    from tallybook.expressions.compile import column_named

    if not step.sources:
        return beside.withColumns(dict(values)) if values else beside
    names = [name for name in step.after.columns if name in values or name in step.before.columns]
    return beside.select(*(values[name].alias(name) if name in values else column_named(name) for name in names))
