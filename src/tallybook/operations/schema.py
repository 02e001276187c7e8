"""The schema of the working dataset between two operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from tallybook.errors import Problem
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.model.period import Period
from tallybook.model.relative_period import RelativePeriod, RunPeriod

AsOf = Literal["period_end", "row"]
"""The last day of the period, or a date of each working row. In the latter case rows of all dates are loaded, and the
join compares the dates."""


@dataclass(frozen=True)
class SourceTable:
    """A table whose rows a run loads: the main table of a dataset version, or one of its lookup tables."""

    dataset: Dataset
    table: Table
    open: bool = False
    """True if the project that registers the dataset has problems: some columns may be unknown."""
    period: RelativePeriod | None = None
    """The period whose rows are read, relative to that of the run; None for the run's own."""
    pinned: bool = False
    """True if the project names the version whose rows are read. Otherwise the rows of a registered dataset by period
    are those of the newest version of each period."""
    as_of: AsOf | None = None
    """When the rows of a bitemporal table must be valid; None for the start of `period`, or the as-of date of the
    run if that is None, too."""

    def periods(self, run: RunPeriod) -> tuple[Period, ...]:
        """The periods whose rows a run reads. Raises PeriodNotFound if the calendar does not have them."""
        return run.relative(self.period if self.table.temporal_mode == "period" else None)

    def scope_table(self, alias: str, *, joined: bool) -> ScopeTable:
        """Returns the table as expressions see it; if it is joined, its system columns need their full name."""
        if not joined:
            return ScopeTable(alias, {**self.table.business_types, **self.table.system_types}, open=self.open)
        temporal = {"period": (PERIOD,), "bitemporal": (VALID_FROM, VALID_TO), "none": ()}[self.table.temporal_mode]
        hidden = {name: self.table.system_types[name] for name in temporal}
        return ScopeTable(alias, self.table.business_types, hidden, joined=True, open=self.open)

    def __str__(self) -> str:
        period = f", period {self.period}" if self.period is not None else ""
        at_end = ", as of the end of the period" if self.as_of == "period_end" else ""
        return f"{self.dataset.id} v{self.dataset.version}, table {self.table.name}{period}{at_end}"


@dataclass(frozen=True)
class LookupTable:
    """A lookup of the input dataset with what it joins on: (column of the main table, column of the target)."""

    alias: str
    source: SourceTable
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class WorkingSchema:
    """Business columns in order, then system columns; the table name and lookups they are read by."""

    table: str
    business: Mapping[str, ColumnType]
    system: Mapping[str, ColumnType]
    lookups: Mapping[str, LookupTable] = field(default_factory=dict)
    missing: Mapping[str, Problem] = field(default_factory=dict)
    """The problems of lookups whose table does not exist, by alias."""
    natural_key: tuple[str, ...] = ()
    """The columns by which people identify a row of the input dataset."""
    open: bool = False
    """True after an operation that could not be read: columns may be missing here."""

    @cached_property
    def columns(self) -> Mapping[str, ColumnType]:
        return {**self.business, **self.system}

    def scope(self) -> Scope:
        """The working rows and the lookups."""
        working = ScopeTable(self.table, self.columns, open=self.open)
        lookups = (lookup.source.scope_table(lookup.alias, joined=True) for lookup in self.lookups.values())
        missing = (ScopeTable(alias, {}, joined=True, missing=problem) for alias, problem in self.missing.items())
        return Scope((working, *lookups, *missing))

    def with_column(self, name: str, type: ColumnType) -> WorkingSchema:
        """With a business column added at the end, or retyped where it is."""
        return replace(self, business={**self.business, name: type})
