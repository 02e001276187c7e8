"""Joining tables to the working rows: the lookups a step reads, and the tables it joins itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tallybook.expressions.check import Checker, Typed, tables_read
from tallybook.expressions.tree import Call, ColumnName
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.schema import JoinedTable, LookupTable, WorkingSchema

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


def lookups_of(step: Step) -> list[JoinedTable]:
    """The lookups a step reads, as joins."""
    return [JoinedTable(lookup.alias, lookup.source, lookup_condition(lookup, step.before)) for lookup in step.lookups]


def join_lookups(frame: DataFrame, step: Step, build: BuildContext) -> DataFrame:
    """The frame with the columns of every lookup the step reads."""
    return join_tables(frame, step, lookups_of(step), build)


def join_tables(frame: DataFrame, step: Step, tables: Sequence[JoinedTable], build: BuildContext) -> DataFrame:
    """The frame with the columns of each table that the step reads. The tables the selector depends on come first."""
    from tallybook.rows.joins import Join, left_join_unique

    first = _tables_of_selector(step.selector, tables)
    joined: set[str] = set()
    for table in sorted(tables, key=lambda table: table.alias not in first):
        join = Join.on(table.on, table.alias, step.columns_of(table.alias, but_in=table.on))
        asking = _rows_asking(step, build, joined)
        frame = left_join_unique(frame, build.load(table.source), join, asking, build.compiler, step.seq)
        joined.add(table.alias)
    return frame


def _tables_of_selector(selector: Typed | None, tables: Sequence[JoinedTable]) -> set[str]:
    """The tables whose rows decide whether a row is selected. A join condition reads earlier tables only."""
    aliases = set() if selector is None else tables_read(selector)
    for table in reversed(tables):
        aliases |= tables_read(table.on) if table.alias in aliases else set()
    return aliases


def _rows_asking(step: Step, build: BuildContext, joined: set[str]) -> Column | None:
    """The rows that need a match, None for all: the selected ones, or every active one as long as the selector reads a
    table that is not joined yet."""
    readable = step.selector is not None and tables_read(step.selector) <= joined
    return build.chosen(step.selector if readable else None)


def assign_columns(joined: DataFrame, values: Mapping[str, Column], step: Step) -> DataFrame:
    """The working dataset after a step that sets columns, without the columns it has joined.

    Where nothing was joined only what changes is named: Spark analyses every column of a select, and there may be
    hundreds.
    """
    from tallybook.expressions.compile import column_named

    if not step.sources:
        return joined.withColumns(dict(values)) if values else joined
    names = [name for name in step.after.columns if name in values or name in step.before.columns]
    return joined.select(*(values[name].alias(name) if name in values else column_named(name) for name in names))
