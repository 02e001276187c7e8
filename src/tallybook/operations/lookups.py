"""Joining tables to the working rows: the lookups a step reads, and the tables it joins itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tallybook.expressions.check import Checker, Typed, tables_read
from tallybook.expressions.tree import Call, ColumnName
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.schema import JoinedTable, LookupTable, WorkingSchema

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import Rows

Values = Callable[["Compiler"], Mapping[str, "Column"]]
"""Makes the new values of columns, with a compiler that reads the rows."""


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


def join_tables(rows: Rows, step: Step, tables: Sequence[JoinedTable], build: BuildContext) -> Rows:
    """The rows with the columns of each table that the step reads. The tables the selector depends on come first."""
    from tallybook.rows.joins import Join, left_join_unique

    if not tables:
        return rows
    rows = rows.settled()
    frame, compiler = rows.frame, rows.compiler(build.compiler)
    first = _tables_of_selector(step.selector, tables)
    joined: set[str] = set()
    for table in sorted(tables, key=lambda table: table.alias not in first):
        join = Join.on(table.on, table.alias, step.columns_of(table.alias, but_in=table.on))
        readable = step.selector is not None and tables_read(step.selector) <= joined
        asking = rows.chosen(step.selector if readable else None, compiler, include_deleted=step.include_deleted)
        other = build.load(table.source)
        frame = left_join_unique(frame, other, join, asking, compiler, step.seq, names_key=build.names_keys)
        joined.add(table.alias)
    return replace(rows, frame=frame)


def _tables_of_selector(selector: Typed | None, tables: Sequence[JoinedTable]) -> set[str]:
    """The tables whose rows decide whether a row is selected. A join condition reads earlier tables only."""
    aliases = set() if selector is None else tables_read(selector)
    for table in reversed(tables):
        aliases |= tables_read(table.on) if table.alias in aliases else set()
    return aliases


def assign_columns(rows: Rows, step: Step, tables: Sequence[JoinedTable], values: Values, build: BuildContext) -> Rows:
    """The rows of a segment after a step that sets columns. `values` makes the new values; it may read the columns of
    the tables."""
    from tallybook.expressions.functions.dates import timestamp_literal

    after = step.segment_after(rows.segment, build.evaluator)
    rows = rows.ready(step.reads | {DELETED})
    compiler = rows.compiler(build.compiler)
    chosen = None if step.selects(rows.segment, build.evaluator) else rows.chosen(step.selector, compiler)
    stamp = {UPDATED_AT: timestamp_literal(build.evaluator.timestamp)} if UPDATED_AT in after.varying else {}
    assigned = join_tables(rows, step, tables, build).assigned(stamp | dict(values(compiler)), chosen, after)
    return assigned.narrowed(after.varying) if tables else assigned


def filtered(rows: Rows, step: Step, build: BuildContext) -> Rows:
    """The rows that a step selects, with the columns of the lookups it reads."""
    joined = join_tables(rows, step, lookups_of(step), build)
    if step.selects(rows.segment, build.evaluator):
        return joined
    chosen = rows.chosen(step.selector, rows.compiler(build.compiler), include_deleted=step.include_deleted)
    return joined if chosen is None else replace(joined, frame=joined.frame.filter(chosen))
