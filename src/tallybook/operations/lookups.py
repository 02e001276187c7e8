"""Joining tables to the working rows: the lookups a step reads, and the tables it joins itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tallybook.expressions.check import Checker, Typed, columns_read, tables_read
from tallybook.expressions.tree import Call, ColumnName
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import BuildContext, IsUnique, KnownTables, Step
from tallybook.operations.flow import stale_tables
from tallybook.operations.schema import LookupTable, WorkingSchema
from tallybook.operations.sources import JoinedTable, SourceRows
from tallybook.operations.totals import Totals, compute_totals, join_totals
from tallybook.rows.join_condition import Join

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.joins import Fetch
    from tallybook.rows.working import Rows

Values = Callable[["Compiler"], Mapping[str, "Column"]]
"""Makes the new values of columns, with a compiler that reads the rows."""


def no_values(_compiler: Compiler) -> Mapping[str, Column]:
    """For steps that set nothing but system columns."""
    return {}


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
    return [
        JoinedTable(lookup.alias, SourceRows(lookup.source), lookup_condition(lookup, step.before))
        for lookup in step.lookups
    ]


def join_tables(rows: Rows, step: Step, tables: Sequence[JoinedTable], build: BuildContext) -> Rows:
    """The rows with the columns of each table that the step reads. The tables the selector depends on come first. A
    lookup that an earlier step has joined is not joined again."""
    from tallybook.rows.joins import added_columns, check_unique, left_join_unique

    if not tables:
        return rows
    unmatched = step.unmatched(rows.segment, build.evaluator)
    tables = [table for table in tables if table.alias not in unmatched]
    rows = replace(
        rows if rows.joined.keys() >= {table.alias for table in tables} else rows.settled(), unmatched=unmatched
    )
    frame, compiler = rows.frame, rows.compiler(build.compiler)
    first = _tables_of_selector(step.selector, tables)
    joined = set(unmatched)
    present = dict(rows.joined)
    for table in sorted(tables, key=lambda table: table.alias not in first):
        join = _join_of(step, table, build)
        readable = step.selector is not None and tables_read(step.selector) <= joined
        asking = rows.chosen(step.selector if readable else None, compiler, include_deleted=step.include_deleted)
        load, is_kept = partial(table.rows.frame, build), (step.seq, table.alias) in build.kept_tables
        by_key = build.keyed.by_key(table.rows, join, load, build.compiler, is_kept=is_kept)
        if table.alias not in rows.joined:
            frame = left_join_unique(frame, by_key, join, asking, compiler, step.seq, names_key=build.names_keys)
        elif not by_key.is_unique:
            frame = check_unique(frame, join, asking, compiler, step.seq, names_key=build.names_keys)
        if table.alias in build.shared:
            present[table.alias] = added_columns(join, is_unique=by_key.is_unique)
        joined.add(table.alias)
    return replace(rows, frame=frame, joined=present)


def preparations(step: Step, build: BuildContext, known: KnownTables, fetch: Fetch) -> list[Callable[[], None]]:
    """Returns what prepares each of the tables of which the step joins at most one row to each of its rows.

    Small tables are fetched if the joined rows are used several times. A table whose keys are known to be unique is
    joined without a check. Other small tables are fetched, too, to find out whether their keys are unique.
    """
    tables = (*lookups_of(step), *step.unique_joins)
    return [partial(_prepare, step, table, build, known, fetch) for table in tables]


def _prepare(step: Step, table: JoinedTable, build: BuildContext, known: KnownTables, fetch: Fetch) -> None:
    join, load = _join_of(step, table, build), partial(table.rows.frame, build)
    if not build.keyed.claim(table.rows, join):
        return
    is_small, is_shared = known.is_small(table.source), (step.seq, table.alias) in build.kept_tables
    if is_small and is_shared and build.keyed.fetch(table.rows, join, load, build.compiler, fetch):
        return
    if table.rows.are_unique_by(join.key_columns, known):
        build.keyed.trust(table.rows, join, partial(table.rows.frame, build, spread=True), build.compiler)
    elif is_small and not is_shared:
        build.keyed.fetch(table.rows, join, load, build.compiler, fetch)


def droppable_aliases(step: Step, is_unique: IsUnique) -> frozenset[str]:
    """Returns the tables that a step need not join if nothing reads them: they give each row one row at most, and
    finding that one cannot fail. `is_unique` says whether it is known that no two rows have the same keys."""
    tables = [(table, Join.on(table.conditions, table.alias, ())) for table in (*lookups_of(step), *step.joins)]
    return frozenset(table.alias for table, join in tables if join.is_reusable and is_unique(table.rows, join))


def _join_of(step: Step, table: JoinedTable, build: BuildContext) -> Join:
    shared = build.shared.get(table.alias)
    columns = step.columns_of(table.alias, but_in=table.conditions) if shared is None else shared.columns
    return Join.on(table.conditions, table.alias, columns)


def _tables_of_selector(selector: Typed | None, tables: Sequence[JoinedTable]) -> set[str]:
    """The tables whose rows decide whether a row is selected."""
    return tables_behind(() if selector is None else (selector,), tables)


def tables_behind(expressions: Iterable[Typed], tables: Sequence[JoinedTable]) -> set[str]:
    """The tables that expressions read, and those that are needed to join these. A join condition reads earlier tables
    only."""
    aliases = {alias for typed in expressions for alias in tables_read(typed)}
    for table in reversed(tables):
        aliases |= tables_read(table.on) if table.alias in aliases else set()
    return aliases


def assign_columns(rows: Rows, step: Step, tables: Sequence[JoinedTable], values: Values, build: BuildContext) -> Rows:
    """The rows of a segment after a step that sets columns. `values` makes the new values; it may read the columns of
    the tables."""
    from tallybook.expressions.functions.dates import timestamp_literal

    after = step.segment_after(rows.segment, build.evaluator)
    rows = rows.ready(step.reads | {DELETED})
    joined = join_tables(rows, step, tables, build)
    compiler = joined.compiler(build.compiler)
    chosen = None if step.selects(rows.segment, build.evaluator) else joined.chosen(step.selector, compiler)
    stamp = {UPDATED_AT: timestamp_literal(build.evaluator.timestamp)} if UPDATED_AT in after.varying else {}
    if build.totals:
        joined = join_totals(joined.settled(), build.totals, compiler)
        compiler = replace(compiler, totals={over: name for one in build.totals for over, name in one.values.items()})
    new = stamp | dict(values(compiler))
    if step.deletes_rows:
        new[DELETED] = rows.deleted_or(None if step.selector is None else compiler.column(step.selector))
    assigned = joined.assigned(new, chosen, after, _reads(step, rows))
    if joined.frame is not rows.frame:
        assigned = assigned.narrowed(after.varying, assigned.joined)
    return assigned.without_joined(stale_tables(step, build.shared))


def _reads(step: Step, rows: Rows) -> dict[str, list[str]]:
    """The working columns that are read for each column that a step sets, as often as they are read."""
    active = [] if rows.segment.all_active else [DELETED]
    selector = [] if step.selector is None else _working_columns(step.selector)
    values = {
        name: [] if path is None else _working_columns(step.expressions[path]) for name, path in step.writes.items()
    }
    return {name: [*([] if name == DELETED else active), *selector, *read] for name, read in values.items()}


def _working_columns(typed: Typed) -> list[str]:
    return [column.column for column in columns_read(typed) if column.table is None]


def totals_of(rows: Rows, step: Step, build: BuildContext) -> tuple[Totals, ...]:
    """The aggregates over groups of the rows that a step selects. `rows` are all rows that it may select."""
    tables = [*lookups_of(step), *step.joins]
    selector = () if step.selector is None else (step.selector,)
    needed = tables_behind((*selector, *step.overs), tables)
    selected = filtered(rows, step, build, [table for table in tables if table.alias in needed])
    return compute_totals(selected, step.overs, build.compiler)


def filtered(rows: Rows, step: Step, build: BuildContext, tables: Sequence[JoinedTable] | None = None) -> Rows:
    """The rows that a step selects, with the columns of tables, by default of the lookups that it reads."""
    joined = join_tables(rows, step, lookups_of(step) if tables is None else tables, build)
    if step.selects(rows.segment, build.evaluator):
        return joined
    chosen = joined.chosen(step.selector, joined.compiler(build.compiler), include_deleted=step.include_deleted)
    return joined if chosen is None else replace(joined, frame=joined.frame.filter(chosen))
