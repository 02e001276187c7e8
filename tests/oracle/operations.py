"""The operations on a list of rows. Each checks itself first, as a whole, then computes row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from tallybook.errors import ProblemError
from tallybook.expressions.parse import parse
from tallybook.expressions.tree import Call, Node
from tallybook.model.columns import ALIASES, BOOLEAN, NULL, RESERVED, ColumnType
from tallybook.operations.aggregate import Aggregate
from tallybook.operations.append import Append
from tallybook.operations.check import Check
from tallybook.operations.delete import Delete
from tallybook.operations.grouping import Grouping
from tallybook.operations.output import Output
from tallybook.operations.publication import ALL_SYSTEM_COLUMNS
from tallybook.operations.update import Update

from .expressions import Context, Group, Meaning, Row, Selected, condition, meaning_of
from .readings import at_start, attempt, needed
from .sources import (
    Chosen,
    Joined,
    chosen,
    grouping_of,
    groups_of,
    joined_source,
    keys_of,
    no_duplicates,
    value_of,
    with_lookups,
)
from .tables import Rows, Run, Types, Working
from .values import FailedError, RefusedError, goes_into, put

Written = tuple[list[str], Rows]
"""What an output writes: its columns in order, and the rows."""


def is_active(row: Row) -> bool:
    return row["_deleted"] is not True


def column_name(name: str, working: Working) -> None:
    """A name for a column that an operation fills."""
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise RefusedError("InvalidColumnName")
    if name not in working.columns and name.lower() in {known.lower() for known in working.columns}:
        raise RefusedError("DuplicateColumn")


def type_for(name: str, meaning: Meaning, known: Mapping[str, ColumnType]) -> ColumnType:
    """An existing column keeps its type; a new one takes the expression's, which must have one."""
    target = known.get(name, meaning.type)
    if target == NULL:
        raise RefusedError("TypeMismatch")
    if not goes_into(meaning.type, target) and not (meaning.sums_integers and target.kind == "integer"):
        raise RefusedError("TypeMismatch")
    return target


# --- update ---------------------------------------------------------------------------------------------------------


def update(operation: Update, working: Working, run: Run) -> Working:
    assignments = operation.arguments.assignments
    if not assignments:
        raise RefusedError("EmptyAssignments")
    views = list(working.views(run))
    joins: dict[str, Joined] = {}
    read_by: dict[str, set[str]] = {}
    for join in operation.arguments.joins:
        joined = joined_source(join, join.alias, run, working.columns)
        if join.alias.lower() in {view.name.lower() for view in views}:
            raise RefusedError("DuplicateColumn")
        views.append(joined.view)
        context = run.context(views)
        joins[join.alias] = replace(joined, on=condition(join.on, context))
        read_by[join.alias] = context.reads
        at_start(joined.rows)
    context = replace(run.context(views), branch=operation.selector is not None)
    select = condition(operation.selector, replace(context, branch=False))
    context = replace(context, selected=Selected())
    # The tables on whose match it depends whether a row is selected: the selector's, and what their conditions read.
    decisive = set(context.reads)
    for alias in reversed(joins):
        decisive |= read_by[alias] if alias in decisive else set()
    no_duplicates([each.column for each in assignments])
    columns: dict[str, tuple[ColumnType, Meaning]] = {}
    for assignment in assignments:
        if assignment.column in RESERVED - {"_labels"}:
            raise RefusedError("SystemColumn")
        column_name(assignment.column, working)
        meaning = meaning_of(assignment.expression, context)
        type = type_for(assignment.column, meaning, working.columns)
        columns[assignment.column] = (type, meaning)
        if meaning.constant and not context.branch:
            at_start(value_of, meaning, {}, type)
    read = context.reads.union(*read_by.values())

    def beside(tables: set[str]) -> Callable[[Row], Row]:
        look_up = with_lookups(working, run, tables)
        chosen = [join for alias, join in joins.items() if alias in tables]
        return lambda row: reduce(lambda wide, join: join.beside(wide), chosen, look_up(row))

    deciding, others = beside(decisive), beside(read.union(joins) - decisive)

    def choose(row: Row) -> tuple[Row, object]:
        if not is_active(row):
            return row, False
        wide = deciding(row)
        chosen = attempt(select, wide)
        return (wide, False) if chosen is False else (others(wide), chosen)

    def updated(row: Row, wide: Row, chosen: object) -> Row:
        before = {**dict.fromkeys(columns), **row}
        if chosen is False:
            return before
        if isinstance(chosen, FailedError):
            in_doubt = [*columns, *(["_updated_at"] if row["_updated_at"] != run.timestamp else [])]
            return {**before, **dict.fromkeys(in_doubt, chosen)}
        new = {name: attempt(value_of, meaning, wide, type) for name, (type, meaning) in columns.items()}
        return {**before, **new, "_updated_at": run.timestamp}

    choices = [choose(row) for row in working.rows]
    _tell_selected(context, choices)
    found = [updated(row, *choice) for row, choice in zip(working.rows, choices, strict=True)]
    added = {name: type for name, (type, _) in columns.items() if name not in working.columns}
    return replace(working, business=working.business | added, rows=found)


def _tell_selected(context: Context, choices: Sequence[tuple[Row, object]]) -> None:
    """Tells the aggregates over groups which rows are selected."""
    failed = next((chosen for _, chosen in choices if isinstance(chosen, FailedError)), None)
    selected = [wide for wide, chosen in choices if chosen is True]
    assert context.selected is not None
    context.selected.rows = failed or selected
    for over in context.overs:
        for wide in selected:
            at_start(over, wide)


# --- aggregate and append -------------------------------------------------------------------------------------------


def _summaries(
    groups: Sequence[Group], results: Mapping[str, Meaning], types: Types, system: Callable[[Group], Row]
) -> Rows:
    return [
        {
            **{key: value for key, value in group.keys.items() if key not in RESERVED},
            **{name: attempt(value_of, meaning, group, types[name]) for name, meaning in results.items()},
            **system(group),
        }
        for group in groups
    ]


def completed(rows: Rows, columns: Types) -> Rows:
    """With NULL in columns a row does not have."""
    return [{name: row.get(name) for name in columns} for row in rows]


def aggregate(operation: Aggregate, working: Working, run: Run) -> Working:
    context = run.context(working.views(run))
    select = condition(operation.selector, context)
    keys, results, read = grouping_of(operation.arguments, working.views(run), run)
    types = {}
    for name, meaning in results.items():
        if name in RESERVED:
            raise RefusedError("SystemColumn")
        column_name(name, working)
        types[name] = type_for(name, meaning, working.business)
    deciding, others = with_lookups(working, run, context.reads), with_lookups(working, run, read - context.reads)
    wide = [deciding(row) for row in working.rows if is_active(row)]
    chosen = [others(row) for row in wide if select(row)]

    def system(group: Group) -> Row:
        made = run.made(operation.seq, working.input, working.input.main_table, None)
        return {**made, **{key: value for key, value in group.keys.items() if key in RESERVED - {"_row_id"}}}

    summary = _summaries(groups_of(chosen, keys), results, types, system)
    after = replace(working, business={**working.business, **types})
    return replace(after, rows=completed([*working.rows, *summary], after.columns))


def append(operation: Append, working: Working, run: Run) -> Working:
    if operation.selector is not None:
        raise RefusedError("InvalidArguments")
    arguments = operation.arguments
    inside = arguments.source.selector, arguments.source.aggregation
    beside = arguments.source_selector, arguments.aggregation
    if any(one is not None and other is not None for one, other in zip(inside, beside, strict=True)):
        raise RefusedError("InvalidArguments")
    selector = beside[0] if beside[0] is not None else inside[0]
    source = chosen(arguments.source, selector, run)
    rows = _append_rows(operation.seq, source, inside[1] or beside[1], working.business, run)
    return replace(working, rows=[*working.rows, *completed(rows, working.columns)])


def _append_rows(seq: int, source: Chosen, grouping: Grouping | None, target: Types, run: Run) -> Rows:
    table = source.table

    def system(period: object) -> dict[str, object]:
        return run.made(seq, source.dataset, table, period)

    if grouping is None:
        own = table.business_types
        _check_alignment(own, (), target)
        return [
            {**{n: attempt(put, row[n], target[n]) for n in own}, **system(row["_period"])} for row in source.rows()
        ]
    keys, results, _ = grouping_of(grouping, source.views, run)
    incoming = {key: source.views[0].columns[key] for key in keys if key not in RESERVED}
    incoming |= {name: meaning.type for name, meaning in results.items()}
    whole = [name for name, meaning in results.items() if meaning.sums_integers]
    _check_alignment(incoming, whole, target)
    summary = _summaries(
        groups_of(source.rows(), keys), results, target, lambda group: system(group.keys.get("_period", run.period))
    )
    return [{**row, **{n: attempt(put, row[n], target[n]) for n in keys if n not in RESERVED}} for row in summary]


def _check_alignment(incoming: Mapping[str, ColumnType], sums: Sequence[str], target: Types) -> None:
    for name, type in incoming.items():
        if name not in target:
            raise RefusedError("ColumnMismatch")
        if not goes_into(type, target[name]) and not (name in sums and target[name].kind == "integer"):
            raise RefusedError("ColumnMismatch")


# --- delete and output ----------------------------------------------------------------------------------------------


def delete(operation: Delete, working: Working, run: Run) -> Working:
    context = run.context(working.views(run))
    select = condition(operation.selector, context)
    beside = with_lookups(working, run, context.reads)
    gone = {"_deleted": True, "_updated_at": run.timestamp}
    rows = [{**row, **gone} if is_active(row) and select(beside(row)) else row for row in working.rows]
    return replace(working, rows=rows)


class Tested(NamedTuple):
    """How many rows or groups a check tested, and how many of them failed."""

    tested: int
    failed: int


def check(operation: Check, working: Working, run: Run) -> Tested:
    views, args = working.views(run), operation.arguments
    context = run.context(views)
    select = condition(operation.selector, context)
    if not args.assert_.strip():
        raise RefusedError("InvalidArguments")
    keys = keys_of(args.group_by, views)
    no_duplicates(keys)
    of_groups = bool(keys) or any(_is_aggregate(name) for name in _called(args.assert_))
    tested = run.context(views, grouped=keys) if of_groups else run.context(views)
    meaning = meaning_of(args.assert_, tested)
    if meaning.type not in (BOOLEAN, NULL):
        raise RefusedError("InvalidSelector")
    deciding, others = (
        with_lookups(working, run, context.reads),
        with_lookups(working, run, tested.reads - context.reads),
    )
    wide = [deciding(row) for row in working.rows if is_active(row)]
    chosen = [others(row) for row in wide if select(row)]
    units: Sequence[Row | Group] = chosen
    if of_groups:
        units = groups_of(chosen, keys) if keys else [Group({}, chosen)]
    return Tested(len(units), sum(meaning.of(unit) is not True for unit in units))


def _called(text: str) -> Iterator[str]:
    """The names of all functions in an expression; none if it cannot be read."""
    try:
        waiting: list[Node] = [parse(text)]
    except ProblemError:
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call):
            yield node.name
            waiting += node.args


def _is_aggregate(name: str) -> bool:
    from .functions import defined

    return name in defined()[1]


def output(operation: Output, working: Working, run: Run) -> Written:
    context = run.context(working.views(run))
    select = condition(operation.selector, context)
    columns = _projection(operation, working)
    name = operation.arguments.register_as_dataset
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise RefusedError("InvalidDatasetName")
    beside = with_lookups(working, run, context.reads)
    rows = [row for row in working.rows if operation.arguments.include_deleted or is_active(row)]
    chosen = [row for row in rows if select(beside(row))]
    written = [{header: needed(row[name]) for header, name in columns.items()} for row in chosen]
    return list(columns), written


def _projection(operation: Output, working: Working) -> dict[str, str]:
    """The working columns that are written, by the names that they get."""
    args = operation.arguments
    destination = args.destination
    by_table = destination.datasource_id is not None and destination.table is not None
    by_part = (destination.datasource_id is None) != (destination.table is None)
    if by_part or by_table == (destination.location is not None):
        raise RefusedError("InvalidDestination")
    if args.columns is not None and args.exclude_columns is not None:
        raise RefusedError("InvalidArguments")
    if args.exclude_columns == ALL_SYSTEM_COLUMNS:
        return {name: name for name in working.columns if name not in ALL_SYSTEM_COLUMNS}
    named = [item.column for item in args.columns or ()] if args.exclude_columns is None else args.exclude_columns
    meant = [ALIASES.get(name, name) for name in named]
    if args.columns == () or any(name not in working.columns for name in meant):
        raise RefusedError("ColumnProjectionError")
    no_duplicates(meant)
    if args.columns is not None:
        headers = [item.header or item.column for item in args.columns]
        no_duplicates(headers)
        return dict(zip(headers, meant, strict=True))
    return {name: name for name in working.columns if name not in meant}
