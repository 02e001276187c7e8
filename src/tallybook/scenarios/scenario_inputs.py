"""The rows a scenario gives, typed, and the periods they count for."""

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
from tallybook.model.resolver import ANY_LEVEL, Resolver
from tallybook.operations.schema import SourceTable
from tallybook.resolve.locate import path_target
from tallybook.runs.locations import Locations
from tallybook.scenarios.load import Case
from tallybook.scenarios.model import FileRows, Row
from tallybook.scenarios.values import read_given


@dataclass(frozen=True)
class ScenarioInputs:
    """What the tables of one scenario hold."""

    case: Case
    period: Period

    def tables(self) -> dict[Key, GivenRows | Location]:
        """The rows of the tables the project reads, as far as they are given."""
        tables: dict[Key, GivenRows | Location] = {}
        for source in self.case.sources:
            given = self.case.body.data.get(source.dataset.id, {}).get(source.table.name)
            if given is not None:
                held = self._location(given) if isinstance(given, FileRows) else self._rows(source.table, given)
                tables[source.dataset.id, source.table.name] = held
        return tables

    def _rows(self, table: Table, rows: Sequence[Row]) -> GivenRows:
        """The declared columns, and the system columns that any row has or every row of the table needs."""
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

    def periods(self) -> dict[Key, list[str]]:
        """For each table the scenario's period, and its parts where a run would find those in places of their own."""
        return {
            (source.dataset.id, source.table.name): list(dict.fromkeys([self.period.identifier, *self._parts(source)]))
            for source in self.case.sources
        }

    def _parts(self, source: SourceTable) -> list[str]:
        rendered = (location.period for location in self._locations(source))
        return [name for name in rendered if name and self.period.contains(self._calendar.period(name))]

    def _locations(self, source: SourceTable) -> Sequence[Location]:
        """Where a run would look. Only a scenario with resolvers of its own minds that there is no such place.

        What another project registers knows its own place.
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
        """Whether a rule could look in a place for each part of the period; conditions are not evaluated for less."""
        levels = {rule.data_level for rule in resolver.rules} - {ANY_LEVEL, self.period.level}
        return any(self._calendar.finer(level, self.period.level) for level in levels)

    @cached_property
    def _finder(self) -> Locations:
        definitions = self.case.checked.definitions
        assert self.case.bound is not None
        return Locations(
            root=definitions.root,
            period=self.period,
            calendar=self._calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=self.case.bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered={},
            timestamp=self.case.body.run_timestamp,
        )

    @property
    def _calendar(self) -> Calendar:
        calendar = self.case.checked.calendar
        assert calendar is not None, "a missing calendar is a problem of the scenario"
        return calendar
