"""The five operations on a list of rows. Each checks itself first, as a whole, then computes row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tallybook.expressions.parse import parse
from tallybook.expressions.tree import ColumnName
from tallybook.model.columns import ALIASES, NULL, RESERVED, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.operations.aggregate import Aggregate
from tallybook.operations.append import Append
from tallybook.operations.delete import Delete
from tallybook.operations.grouping import Grouping
from tallybook.operations.output import Output
from tallybook.operations.update import Update

from .expressions import Group, Meaning, Row, View, condition, find, meaning_of
from .readings import at_start, attempt, needed
from .tables import Rows, Run, Types, Working, joined_view, matched, with_lookups
from .values import FailedError, RefusedError, goes_into, put

Joined = tuple[Dataset, Table, View, Callable[[Row], bool]]
"""A joined table: whose, which, how its columns are read, and when a row matches."""
Written = tuple[list[str], Rows]
"""What an output writes: its columns in order, and the rows."""


def is_active(row: Row) -> bool:
    return row["_deleted"] is not True


def _column_name(name: str, working: Working) -> None:
    """A name for a column that an operation fills."""
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise RefusedError("InvalidColumnName")
    if name not in working.columns and name.lower() in {known.lower() for known in working.columns}:
        raise RefusedError("DuplicateColumn")


def _no_duplicates(names: Sequence[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise RefusedError("DuplicateColumn")


def _type_for(name: str, meaning: Meaning, known: Mapping[str, ColumnType]) -> ColumnType:
    """An existing column keeps its type; a new one takes the expression's, which must have one."""
    target = known.get(name, meaning.type)
    if target == NULL:
        raise RefusedError("TypeMismatch")
    if not goes_into(meaning.type, target) and not (meaning.sums_integers and target.kind == "integer"):
        raise RefusedError("TypeMismatch")
    return target


def _value(meaning: Meaning, row: Row | Group, type: ColumnType) -> object:
    return put(meaning.of(row), type)


# --- update ---------------------------------------------------------------------------------------------------------


def update(operation: Update, working: Working, run: Run) -> Working:
    assignments = operation.arguments.assignments
    if not assignments:
        raise RefusedError("EmptyAssignments")
    views = list(working.views(run))
    joins: dict[str, Joined] = {}
    read_by: dict[str, set[str]] = {}
    for join in operation.arguments.joins:
        dataset = run.dataset(join)
        if join.alias.lower() in {view.name.lower() for view in views}:
            raise RefusedError("DuplicateColumn")
        views.append(joined_view(join.alias, dataset.main_table))
        context = run.context(views)
        joins[join.alias] = (dataset, dataset.main_table, views[-1], condition(join.on, context))
        read_by[join.alias] = context.reads
    context = replace(run.context(views), branch=operation.selector is not None)
    select = condition(operation.selector, replace(context, branch=False))
    # The tables on whose match it depends whether a row is selected: the selector's, and what their conditions read.
    decisive = set(context.reads)
    for alias in reversed(joins):
        decisive |= read_by[alias] if alias in decisive else set()
    _no_duplicates([each.column for each in assignments])
    columns: dict[str, tuple[ColumnType, Meaning]] = {}
    for assignment in assignments:
        if assignment.column in RESERVED - {"_labels"}:
            raise RefusedError("SystemColumn")
        _column_name(assignment.column, working)
        meaning = meaning_of(assignment.expression, context)
        type = _type_for(assignment.column, meaning, working.columns)
        columns[assignment.column] = (type, meaning)
        if meaning.constant and not context.branch:
            at_start(_value, meaning, {}, type)
    read = context.reads.union(*read_by.values())

    def beside(tables: set[str]) -> Callable[[Row], Row]:
        look_up = with_lookups(working, run, tables)
        chosen = [join for alias, join in joins.items() if alias in tables]
        return lambda row: reduce(lambda wide, join: matched(wide, *join, run), chosen, look_up(row))

    deciding, others = beside(decisive), beside(read.union(joins) - decisive)

    def updated(row: Row) -> Row:
        before = {**dict.fromkeys(columns), **row}
        if not is_active(row):
            return before
        wide = deciding(row)
        chosen = attempt(select, wide)
        if chosen is False:
            return before
        wide = others(wide)
        if isinstance(chosen, FailedError):
            in_doubt = [*columns, *(["_updated_at"] if row["_updated_at"] != run.timestamp else [])]
            return {**before, **dict.fromkeys(in_doubt, chosen)}
        new = {name: attempt(_value, meaning, wide, type) for name, (type, meaning) in columns.items()}
        return {**before, **new, "_updated_at": run.timestamp}

    added = {name: type for name, (type, _) in columns.items() if name not in working.columns}
    return replace(working, business=working.business | added, rows=[updated(row) for row in working.rows])


# --- aggregate and append -------------------------------------------------------------------------------------------


def _grouping(grouping: Grouping, views: Sequence[View], run: Run) -> tuple[list[str], dict[str, Meaning], set[str]]:
    """The key columns, the results by name, and the joined tables the results read."""
    if not grouping.group_by:
        raise RefusedError("EmptyGroupBy")
    if not grouping.aggregations:
        raise RefusedError("EmptyAggregations")
    keys = []
    for name in grouping.group_by:
        node = parse(name)
        if not isinstance(node, ColumnName):
            raise RefusedError("ColumnNotFound")
        view, column = find(node, views)
        if view.joined:
            raise RefusedError("ColumnNotFound")
        keys.append(column)
    context = run.context(views, grouped=keys)
    results = {each.column: meaning_of(each.expression, context) for each in grouping.aggregations}
    _no_duplicates([*keys, *(each.column for each in grouping.aggregations)])
    return keys, results, context.reads


def _groups(rows: Rows, keys: Sequence[str]) -> list[Group]:
    """Rows with equal keys together; NULL equals NULL here."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(needed(row[key]) for key in keys), []).append(row)
    return [Group(dict(zip(keys, key, strict=True)), members) for key, members in found.items()]


def _summaries(
    groups: Sequence[Group], results: Mapping[str, Meaning], types: Types, system: Callable[[Group], Row]
) -> Rows:
    return [
        {
            **{key: value for key, value in group.keys.items() if key not in RESERVED},
            **{name: attempt(_value, meaning, group, types[name]) for name, meaning in results.items()},
            **system(group),
        }
        for group in groups
    ]


def _completed(rows: Rows, columns: Types) -> Rows:
    """With NULL in columns a row does not have."""
    return [{name: row.get(name) for name in columns} for row in rows]


def aggregate(operation: Aggregate, working: Working, run: Run) -> Working:
    context = run.context(working.views(run))
    select = condition(operation.selector, context)
    keys, results, read = _grouping(operation.arguments, working.views(run), run)
    types = {}
    for name, meaning in results.items():
        if name in RESERVED:
            raise RefusedError("SystemColumn")
        _column_name(name, working)
        types[name] = _type_for(name, meaning, working.business)
    deciding, others = with_lookups(working, run, context.reads), with_lookups(working, run, read - context.reads)
    wide = [deciding(row) for row in working.rows if is_active(row)]
    chosen = [others(row) for row in wide if select(row)]

    def system(group: Group) -> Row:
        made = run.made(operation.seq, working.input, working.input.main_table, None)
        return {**made, **{key: value for key, value in group.keys.items() if key in RESERVED - {"_row_id"}}}

    summary = _summaries(_groups(chosen, keys), results, types, system)
    after = replace(working, business={**working.business, **types})
    return replace(after, rows=_completed([*working.rows, *summary], after.columns))


def append(operation: Append, working: Working, run: Run) -> Working:
    if operation.selector is not None:
        raise RefusedError("InvalidArguments")
    source = run.dataset(operation.arguments.source)
    table = source.main_table
    views = [View(table.name, {**table.business_types, **table.system_types})]
    select = condition(operation.arguments.source_selector, run.context(views))
    rows = _append_rows(operation, source, table, views, working.business, run, select)
    return replace(working, rows=[*working.rows, *_completed(rows, working.columns)])


def _append_rows(
    operation: Append,
    source: Dataset,
    table: Table,
    views: Sequence[View],
    target: Types,
    run: Run,
    select: Callable[[Row], bool],
) -> Rows:
    def system(period: object) -> dict[str, object]:
        return run.made(operation.seq, source, table, period)

    grouping = operation.arguments.aggregation
    if grouping is None:
        _check_alignment(table.business_types, (), target)
        rows = [row for row in run.load(source, table) if is_active(row) and select(row)]
        own = table.business_types
        return [{**{n: attempt(put, row[n], target[n]) for n in own}, **system(row["_period"])} for row in rows]
    keys, results, _ = _grouping(grouping, views, run)
    incoming = {key: views[0].columns[key] for key in keys if key not in RESERVED}
    incoming |= {name: meaning.type for name, meaning in results.items()}
    whole = [name for name, meaning in results.items() if meaning.sums_integers]
    _check_alignment(incoming, whole, target)
    rows = [row for row in run.load(source, table) if is_active(row) and select(row)]
    summary = _summaries(
        _groups(rows, keys), results, target, lambda group: system(group.keys.get("_period", run.period))
    )
    own = [key for key in keys if key not in RESERVED]
    return [{**row, **{n: attempt(put, row[n], target[n]) for n in own}} for row in summary]


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
    return columns, [{name: needed(row[ALIASES.get(name, name)]) for name in columns} for row in chosen]


def _projection(operation: Output, working: Working) -> list[str]:
    args = operation.arguments
    destination = args.destination
    by_table = destination.datasource_id is not None and destination.table is not None
    by_part = (destination.datasource_id is None) != (destination.table is None)
    if by_part or by_table == (destination.location is not None):
        raise RefusedError("InvalidDestination")
    if args.columns is not None and args.exclude_columns is not None:
        raise RefusedError("InvalidArguments")
    named = args.columns if args.columns is not None else args.exclude_columns or ()
    meant = [ALIASES.get(name, name) for name in named]
    if args.columns == () or any(name not in working.columns for name in meant):
        raise RefusedError("ColumnProjectionError")
    _no_duplicates(meant)
    if args.columns is not None:
        return list(args.columns)
    return [name for name in working.columns if name not in meant]
