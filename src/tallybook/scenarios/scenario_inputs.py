"""Provides the given rows of a scenario with types, and the periods they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tallybook.engine.local import GivenRows, Key
from tallybook.errors import ProblemError
from tallybook.model.columns import PERIOD, VALIDITY_COLUMNS, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.datasource import FileOptions, FileSource, format_of_path
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.relative_period import RunPeriod
from tallybook.model.resolver import ANY_LEVEL, Resolver
from tallybook.operations.schema import SourceTable
from tallybook.resolve.targets import path_target
from tallybook.runs.planner import Locations
from tallybook.runs.registered import RegisteredDatasets
from tallybook.scenarios.load import Case
from tallybook.scenarios.model import FileRows, Row
from tallybook.scenarios.values import read_given


@dataclass(frozen=True)
class ScenarioInputs:
    """The given tables of one scenario."""

    case: Case
    period: Period

    def tables(self) -> dict[Key, GivenRows | Location]:
        """Returns the given rows of the tables that the project reads."""
        tables: dict[Key, GivenRows | Location] = {}
        for source in self.case.sources:
            given = self.case.body.data.get(source.dataset.id, {}).get(source.table.name)
            if given is not None:
                held = self._location(given) if isinstance(given, FileRows) else self._rows(source.table, given)
                tables[source.dataset.id, source.table.name] = held
        return tables

    def _rows(self, table: Table, rows: Sequence[Row]) -> GivenRows:
        """Returns rows with the declared columns, and the system columns that a row has or the table needs."""
        needed = {"period": (PERIOD,), "bitemporal": tuple(VALIDITY_COLUMNS), "none": ()}[table.temporal_mode]
        named = {name for row in rows for name in row}.union(needed)
        system = {name: type for name, type in table.system_types.items() if name in named}
        columns = table.business_types | system
        return GivenRows(columns, [self._values({PERIOD: self.period.identifier} | row, columns) for row in rows])

    def _values(self, row: Row, columns: dict[str, ColumnType]) -> tuple[object, ...]:
        return tuple(read_given(name, row.get(name), type) for name, type in columns.items())

    def _location(self, given: FileRows) -> Location:
        source = FileSource(id="scenario", type=format_of_path(given.file), options=FileOptions(path_prefix="."))
        return Location(source, path_target(given.file, self.case.checked.definitions.root), self.period.identifier)

    def periods(self) -> dict[SourceTable, list[str]]:
        """Returns the periods that each table is read for, and their parts if a run has a location for each part."""
        return {source: self._periods(source) for source in self.case.sources}

    def _periods(self, source: SourceTable) -> list[str]:
        wanted = source.periods(RunPeriod(self.period, self.calendar))
        rendered = (location.period for location in self._locations(source))
        parts = [name for name in rendered if name and self._is_within(name, wanted)]
        return list(dict.fromkeys([*(period.identifier for period in wanted), *parts]))

    def _is_within(self, name: str, periods: Sequence[Period]) -> bool:
        part = self.calendar.period(name)
        return any(period.contains(part) for period in periods)

    def _locations(self, source: SourceTable) -> Sequence[Location]:
        """Returns the locations that a run would read; none for a dataset that another project registers.

        A missing location is an error only if the scenario has resolvers.
        """
        if source.dataset.id not in self.case.checked.definitions.datasets:
            return ()
        if self.case.body.resolvers:
            return self._finder.of_table(source)
        if source.table.temporal_mode != "period":
            return ()
        try:
            resolver = self._finder.resolver_of(source.dataset)
            return self._finder.of_table(source) if self._divides(resolver) else ()
        except ProblemError:
            return ()

    def _divides(self, resolver: Resolver) -> bool:
        """True if a rule could have a location for each part of the period. Only then are conditions evaluated."""
        levels = {rule.data_level for rule in resolver.rules} - {ANY_LEVEL, self.period.level}
        return any(self.calendar.finer(level, self.period.level) for level in levels)

    @cached_property
    def _finder(self) -> Locations:
        definitions = self.case.checked.definitions
        assert self.case.bound is not None
        return Locations(
            root=definitions.root,
            period=self.period,
            calendar=self.calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=self.case.bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered=RegisteredDatasets(),
            timestamp=self.case.body.run_timestamp,
        )

    @property
    def calendar(self) -> Calendar:
        calendar = self.case.checked.calendar
        assert calendar is not None, "a missing calendar is a problem of the scenario"
        return calendar
