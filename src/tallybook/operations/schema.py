"""The schema of the working dataset between two operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tallybook.errors import Problem
from tallybook.expressions.check import Typed
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, ColumnType
from tallybook.model.dataset import Dataset, Table


@dataclass(frozen=True)
class SourceTable:
    """A table whose rows a run loads: the main table of a dataset version, or one of its lookup tables."""

    dataset: Dataset
    table: Table
    open: bool = False
    """True if the project that registers the dataset has problems: some columns may be unknown."""

    def scope_table(self, alias: str, *, joined: bool) -> ScopeTable:
        """Returns the table as expressions see it; if it is joined, its system columns need their full name."""
        if not joined:
            return ScopeTable(alias, {**self.table.business_types, **self.table.system_types}, open=self.open)
        temporal = {"period": (PERIOD,), "bitemporal": (VALID_FROM, VALID_TO), "none": ()}[self.table.temporal_mode]
        hidden = {name: self.table.system_types[name] for name in temporal}
        return ScopeTable(alias, self.table.business_types, hidden, joined=True, open=self.open)

    def __str__(self) -> str:
        return f"{self.dataset.id} v{self.dataset.version}, table {self.table.name}"


@dataclass(frozen=True)
class LookupTable:
    """A lookup of the input dataset with what it joins on: (column of the main table, column of the target)."""

    alias: str
    source: SourceTable
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class JoinedTable:
    """A table joined to the working rows: its columns are read as `alias.column`."""

    alias: str
    source: SourceTable
    on: Typed


@dataclass(frozen=True)
class WorkingSchema:
    """Business columns in order, then system columns; the table name and lookups they are read by."""

    table: str
    business: Mapping[str, ColumnType]
    system: Mapping[str, ColumnType]
    lookups: Mapping[str, LookupTable] = field(default_factory=dict)
    missing: Mapping[str, Problem] = field(default_factory=dict)
    """The problems of lookups whose table does not exist, by alias."""
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
