"""Sources: rows of other datasets for joins and appends, of some period, filtered and summarised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache

from tallybook.expressions.parse import parse
from tallybook.expressions.tree import ColumnName
from tallybook.model.columns import NULL, RESERVED, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.operations.grouping import Grouping
from tallybook.operations.sources import Source

from .expressions import Group, Meaning, Row, View, condition, find, meaning_of
from .periods import days, meant
from .readings import at_start, attempt, needed
from .tables import Rows, Run, Working, joined_view
from .temporal import is_valid
from .values import FailedError, RefusedError, put

EVER = date.min
"""Stands for an as-of date that each working row has for itself."""


@dataclass(frozen=True)
class Joined:
    """A table beside the working rows: how its columns are read, its rows, and which of them match a row."""

    view: View
    rows: Callable[[], Rows]
    on: Callable[[Row], bool]
    dated: str | None = None
    """The column of the working rows with the date on which a match must be valid."""

    def beside(self, row: Row) -> Row:
        """The row with its one match, read as `alias.column`; NULLs where there is none."""
        matches = self.matches(row)
        if len(matches) > 1:
            raise FailedError("JoinNotUnique")
        return {**row, **(matches[0] if matches else self._row({}))}

    def matches(self, row: Row) -> list[Row]:
        """The rows that match, read as `alias.column`."""
        others = self.rows()
        if self.dated is not None:
            day = needed(row[self.dated])
            others = [other for other in others if isinstance(day, date) and is_valid(other, day)]
        candidates = [self._row(other) for other in others]
        if not candidates:
            at_start(self.on, {**row, **self._row({})})
        return [candidate for candidate in candidates if self.on({**row, **candidate})]

    def _row(self, other: Row) -> Row:
        names = (*self.view.columns, *self.view.hidden)
        return {f"{self.view.name}.{name}": other.get(name) for name in names}


@dataclass(frozen=True)
class Chosen:
    """The rows of a source before they are summarised."""

    dataset: Dataset
    table: Table
    views: tuple[View, ...]
    rows: Callable[[], Rows]


def chosen(source: Source, selector: str | None, run: Run, alias: str | None = None) -> Chosen:
    dataset = run.dataset(source)
    table = dataset.main_table
    periods, as_of = _time(source, table, run, joined=alias is not None)
    views = (View(alias or table.name, {**table.business_types, **table.system_types}),)
    select = condition(selector, run.context(views))

    @cache
    def rows() -> Rows:
        loaded = run.load(dataset, table, periods, as_of)
        return [row for row in loaded if row["_deleted"] is not True and select(row)]

    return Chosen(dataset, table, views, rows)


def _time(source: Source, table: Table, run: Run, *, joined: bool) -> tuple[list[str], date]:
    """The periods and the date that a source is read for."""
    said = None if source.period is None else source.period.written
    mode = table.temporal_mode
    by_row = source.as_of not in (None, "period_end")
    if said is not None and (mode == "none" or (mode == "bitemporal" and said == "year_to_date")):
        raise RefusedError("InvalidArguments")
    if source.as_of is not None and mode != "bitemporal":
        raise RefusedError("InvalidArguments")
    if by_row and (not joined or source.aggregation is not None or said is not None):
        raise RefusedError("InvalidArguments")
    periods = meant(run.period, said)
    if by_row:
        return periods, EVER
    first, last = days(periods[0])
    if source.as_of == "period_end":
        return periods, last
    return periods, run.as_of if said is None else first


def joined_source(source: Source, alias: str, run: Run, columns: Mapping[str, ColumnType]) -> Joined:
    """A source of a join, with a condition that nothing meets yet."""
    found = chosen(source, source.selector, run, alias)
    joined = Joined(joined_view(alias, found.table), found.rows, lambda _row: False)
    if source.as_of not in (None, "period_end"):
        name = str(source.as_of).rpartition(".")[2]
        if name not in columns:
            raise RefusedError("ColumnNotFound")
        if columns[name].kind != "date":
            raise RefusedError("TypeMismatch")
        return replace(joined, dated=name)
    if source.aggregation is None:
        return joined
    keys, results, _ = grouping_of(source.aggregation, found.views, run)
    if any(meaning.type == NULL for meaning in results.values()):
        raise RefusedError("TypeMismatch")
    known = {key: found.views[0].columns[key] for key in keys}
    types = {name: meaning.type for name, meaning in results.items()}
    own = {key: type for key, type in known.items() if key not in RESERVED}
    hidden = {key: type for key, type in known.items() if key in RESERVED}

    @cache
    def rows() -> Rows:
        return [
            {**group.keys, **{n: attempt(value_of, meaning, group, types[n]) for n, meaning in results.items()}}
            for group in groups_of(found.rows(), keys)
        ]

    return replace(joined, view=View(alias, {**own, **types}, hidden, joined=True), rows=rows)


def value_of(meaning: Meaning, row: Row | Group, type: ColumnType) -> object:
    return put(meaning.of(row), type)


def no_duplicates(names: Sequence[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise RefusedError("DuplicateColumn")


def grouping_of(grouping: Grouping, views: Sequence[View], run: Run) -> tuple[list[str], dict[str, Meaning], set[str]]:
    """The key columns, the results by name, and the joined tables the results read."""
    if not grouping.group_by:
        raise RefusedError("EmptyGroupBy")
    if not grouping.aggregations:
        raise RefusedError("EmptyAggregations")
    keys = keys_of(grouping.group_by, views)
    context = run.context(views, grouped=keys)
    results = {each.column: meaning_of(each.expression, context) for each in grouping.aggregations}
    no_duplicates([*keys, *(each.column for each in grouping.aggregations)])
    return keys, results, context.reads


def keys_of(names: Sequence[str], views: Sequence[View]) -> list[str]:
    """The columns to group by."""
    keys = []
    for name in names:
        node = parse(name)
        if not isinstance(node, ColumnName):
            raise RefusedError("ColumnNotFound")
        view, column = find(node, views)
        if view.joined:
            raise RefusedError("ColumnNotFound")
        keys.append(column)
    return keys


def groups_of(rows: Rows, keys: Sequence[str]) -> list[Group]:
    """Rows with equal keys together; NULL equals NULL here."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(needed(row[key]) for key in keys), []).append(row)
    return [Group(dict(zip(keys, key, strict=True)), members) for key, members in found.items()]


def with_lookups(working: Working, run: Run, read: set[str]) -> Callable[[Row], Row]:
    """Puts the columns of the lookups that are read beside a row. Deleted rows are not looked up."""
    table, views = working.input.main_table.name, working.views(run)
    parts = []
    for lookup in working.input.lookups:
        if lookup.alias in read:
            pairs = [f"{table}.{c.source_column} = {lookup.alias}.{c.target_column}" for c in lookup.join_conditions]
            on = condition(" AND ".join(pairs), run.context(views))
            view = next(view for view in views if view.name == lookup.alias)
            others = [row for row in run.load(*working.target(lookup.target, run)) if row["_deleted"] is not True]
            parts.append(Joined(view, lambda others=others: others, on))  # type: ignore[misc]  # mypy cannot infer it

    def beside(row: Row) -> Row:
        for part in parts:
            row = part.beside(row)
        return row

    return beside
