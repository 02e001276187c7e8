"""Answers questions about a list of steps: columns still needed, columns used, who set a value, where it came from.

The functions are pure and use only the contract of `base.Step`, never a single operation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import or_

from tallybook.expressions.check import columns_read
from tallybook.model.columns import CREATED_AT, ROW_ID, UPDATED_AT
from tallybook.operations.base import SharedTable, Step
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.operations.sources import SourceRows
from tallybook.rows.join_condition import Join
from tallybook.source import Place


def source_tables(input: SourceTable, steps: Sequence[Step]) -> tuple[SourceTable, ...]:
    """Every table that the steps read, the input first."""
    return tuple(dict.fromkeys([input, *(source for step in steps for source in step.sources)]))


def tables_without_positions(
    input: SourceTable, steps: Sequence[Step], wanted: Collection[str] = ()
) -> frozenset[SourceTable]:
    """The tables whose rows need no position in the data: those that are only joined, and those whose rows get no id
    and no time because nothing reads or publishes them. `wanted` are the columns needed after the last step."""
    first, *after = live_columns(steps, wanted)
    appended = [(step.appends, live) for step, live in zip(steps, after, strict=True) if step.appends is not None]
    become_rows = [(input, first), *((rows.table, live) for rows, live in appended if rows.grouping is None)]
    numbered = {source for source, live in become_rows if live & _BY_POSITION}
    numbered |= {rows.table for step in steps for rows in step.source_rows if ROW_ID in rows.table_columns()}
    return frozenset(source_tables(input, steps)) - numbered


_BY_POSITION = frozenset({ROW_ID, CREATED_AT, UPDATED_AT})
"""The system columns that are made with the position of a row. For the times see `rows.sql.timestamp`."""


def columns_used(steps: Sequence[Step]) -> dict[SourceTable, frozenset[str]]:
    """The columns that expressions and conditions read of each table that is joined and never appended."""
    used: dict[SourceTable, frozenset[str]] = {}
    for step in steps:
        for source, columns in step.source_columns:
            used[source] = used.get(source, frozenset()) | columns
    appended = {step.appends.table for step in steps if step.appends is not None}
    return {source: columns for source, columns in used.items() if source not in appended}


def shared_tables(steps: Sequence[Step]) -> dict[str, SharedTable]:
    """The tables that several of the steps join in the same way, with working columns as keys; by alias."""
    uses: dict[str, list[tuple[Step, object, Collection[str]]]] = {}
    for step in steps:
        for alias, match, keys in _matches(step):
            uses.setdefault(alias, []).append((step, match, keys))
    shared = {}
    for alias, [(_, match, keys), *others] in uses.items():
        if others and keys and all((other, own) == (match, keys) for _, other, own in others):
            columns = chain.from_iterable(_columns_read(step, alias) for step, _, _ in uses[alias])
            shared[alias] = SharedTable(frozenset(keys), tuple(dict.fromkeys(columns)))
    return shared


def _matches(step: Step) -> Iterator[tuple[str, object, Collection[str]]]:
    """The tables that a step joins: the alias, what decides which row matches, and the working columns that do so
    alone. There are none for a table of which several rows may match."""
    for lookup in step.lookups:
        yield lookup.alias, lookup, [own for own, _theirs in lookup.pairs]
    for table in step.joins:
        join = Join.on(table.conditions, table.alias, ())
        keys = join.working_keys if table in step.unique_joins else None
        yield table.alias, (table.rows, join.match), keys or ()


def _columns_read(step: Step, alias: str) -> tuple[str, ...]:
    """The columns of a joined table that a step reads, beside those in the condition of the join."""
    conditions = [condition for table in step.unique_joins for condition in table.conditions if table.alias == alias]
    return step.columns_of(alias, but_in=conditions)


def stale_tables(step: Step, shared: Mapping[str, SharedTable]) -> set[str]:
    """The shared tables whose keys a step changes: its rows may match other rows afterwards."""
    return {alias for alias, table in shared.items() if not table.keys.isdisjoint(step.writes)}


def publications(steps: Sequence[Step]) -> tuple[Publication, ...]:
    """What the steps publish, in order."""
    return tuple(step.publishes for step in steps if step.publishes is not None)


def live_columns(
    steps: Sequence[Step], wanted: Collection[str], *, all_active: bool = False, active_only: bool = False
) -> tuple[frozenset[str], ...]:
    """The working columns needed before each step, and at the end the `wanted` ones: what is needed after the last.

    `all_active` says that no input row is deleted. `active_only` asks for what the rows need that are never deleted.
    Spark computes no other column: what a later step overwrites unread, or what nothing publishes, cannot fail a job.
    """
    deleting = accumulate((step.deletes_rows for step in steps), or_, initial=not all_active)
    live = [frozenset(wanted)]
    for step, may_be_deleted in reversed(list(zip(steps, deleting, strict=False))):
        live.append(step.needs(live[-1], all_active=active_only or not may_be_deleted))
    return tuple(reversed(live))


def narrowed_changes(
    changes: Sequence[Step],
    wanted: Collection[str],
    droppable: Callable[[Step], Collection[str]],
    *,
    all_active: bool,
) -> tuple[Step, ...]:
    """Returns what the steps that change rows must do so that these have the `wanted` columns, and nothing else.

    `droppable` returns the tables of a step that need not be joined if nothing reads them, `all_active` says that no
    row is deleted before the first step.
    """
    deleting = accumulate((step.deletes_rows for step in changes), or_, initial=not all_active)
    needed, kept = frozenset(wanted), list[Step]()
    for step, may_be_deleted in reversed(list(zip(changes, deleting, strict=False))):
        narrowed = step.narrowed(needed, droppable(step))
        if narrowed is not None:
            kept.append(narrowed)
            needed = narrowed.needs(needed, all_active=not may_be_deleted)
    return tuple(reversed(kept))


def used_columns(steps: Sequence[Step], input: SourceTable, dataset_id: str, version: int) -> dict[int, set[str]]:
    """The columns of a dataset version that each step uses, by seq: what a change of the dataset can break.

    Columns of the main table have bare names. Where the dataset is the input, columns of its lookups are
    `alias.column`, and any working column counts that may have come from it.
    """

    def is_meant(source: SourceTable) -> bool:
        return (source.dataset.id, source.dataset.version) == (dataset_id, version)

    if is_meant(input):
        return {step.seq: set(_used_of_input(step)) for step in steps}
    return {
        step.seq: {column for source, columns in step.source_columns if is_meant(source) for column in columns}
        for step in steps
    }


def _used_of_input(step: Step) -> Iterator[str]:
    yield from step.reads
    yield from step.writes
    yield from step.adds or ()
    yield from step.publishes.named if step.publishes is not None else ()
    for lookup in step.lookups:
        yield from (f"{lookup.alias}.{column}" for column in step.columns_of(lookup.alias))


@dataclass(frozen=True)
class Writer:
    """An operation that sets a column, and where in the project it says so."""

    seq: int
    operation: str
    place: Place | None

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"operation {self.seq} '{self.operation}'{where}"


def writers(steps: Sequence[Step], column: str, made_by: int = 0, before: int | None = None) -> tuple[Writer, ...]:
    """The operations that may have set the column on a row, in order.

    `made_by` is the operation that added the row, 0 for an input row; `before` is the output that shows it. Data alone
    says which rows a selector takes, so an operation counts if it could have set the value.
    """
    result: list[Writer] = []
    for step in steps:
        if step.seq < made_by or (before is not None and step.seq >= before):
            continue
        if step.seq == made_by:
            result.append(_writer(step, (step.adds or {}).get(column)))
        elif column in step.writes:
            result.append(_writer(step, step.writes[column] or "selector"))
    return tuple(result)


def last_writer(steps: Sequence[Step], column: str, made_by: int = 0, before: int | None = None) -> Writer | None:
    """The last operation that may have set the column on a row; None means the value came in with the data."""
    return next(reversed(writers(steps, column, made_by, before)), None)


def _writer(step: Step, path: str | None) -> Writer:
    typed = step.expressions.get(path) if path is not None else None
    return Writer(step.seq, step.name, typed.node.span.place if typed is not None else None)


@dataclass(frozen=True, order=True)
class Origin:
    """A column of a table that the values of another column are computed from."""

    dataset_id: str
    dataset_version: int
    table: str
    column: str


Origins = Mapping[str, frozenset[Origin]]
"""By working column."""


def lineage(steps: Sequence[Step], input: SourceTable, output: int) -> dict[str, tuple[Origin, ...]]:
    """For each column that the operation `output` publishes, the columns of tables its values are computed from.

    Conditions and keys decide which rows and values are taken, and are not origins. System columns that the engine
    fills have none.
    """
    publication = next(publication for publication in publications(steps) if publication.seq == output)
    origins: Origins = {name: frozenset({_origin(input, name)}) for name in input.table.business_types}
    for step in steps:
        if step.seq < output:
            origins = _origins_after(step, origins, all_active=not publication.include_deleted)
    columns = publication.working_columns
    return {name: tuple(sorted(origins.get(working, ()))) for name, working in columns.items()}


def _origins_after(step: Step, origins: Origins, *, all_active: bool) -> Origins:
    """A deleted row keeps the values it had, so a column that is set on every active row has one origin more if
    deleted rows count."""
    after = dict(origins)
    for column, path in step.writes.items():
        before = frozenset[Origin]() if all_active and column in step.overwrites else origins.get(column, frozenset())
        after[column] = before | (_origins_of(step, path, origins) if path is not None else frozenset())
    for column, path in (step.adds or {}).items():
        after[column] = origins.get(column, frozenset()) | _origins_of_added(step, column, path, origins)
    return after


def _origins_of_added(step: Step, column: str, path: str | None, origins: Origins) -> frozenset[Origin]:
    if path is not None:
        return _origins_of(step, path, origins)
    if step.appends is None or column not in step.appends.table.table.business_types:
        return frozenset()
    return frozenset({_origin(step.appends.table, column)})


def _origins_of(step: Step, path: str, origins: Origins) -> frozenset[Origin]:
    """The columns of tables that an expression computes its value from."""
    read = columns_read(step.expressions[path])
    if step.appends is not None:
        return frozenset(_origin(step.appends.table, column.column) for column in read)
    lookups = {lookup.alias: SourceRows(lookup.source) for lookup in step.lookups}
    joined = lookups | {join.alias: join.rows for join in step.joins}
    result: set[Origin] = set()
    for column in read:
        if column.table is None:
            result |= origins.get(column.column, frozenset())
        else:
            rows = joined[column.table]
            result |= {_origin(rows.table, name) for name in rows.origins(column.column)}
    return frozenset(result)


def _origin(source: SourceTable, column: str) -> Origin:
    return Origin(source.dataset.id, source.dataset.version, source.table.name, column)
