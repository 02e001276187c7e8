"""Where a pipeline gets rows from: `LocatedTables` reads locations; other classes have frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.plan import Plan
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.operations.schema import SourceTable
from tallybook.storage.inputs import are_small
from tallybook.storage.read import read_all

_OPENED_AT_ONCE = 8


class Tables(Protocol):
    """Rows of tables as stored: declared columns, the system columns of the data, and the position if it is needed."""

    def rows(self, source: SourceTable) -> DataFrame:
        """All rows, of all periods."""
        ...

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The periods whose rows belong to the run."""
        ...

    def is_small(self, source: SourceTable) -> bool:
        """True if one task can process all its rows, so that grouping them needs no shuffle."""
        ...

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        """The locations that are read, to find the file of a bad value."""
        ...


@dataclass(frozen=True)
class LocatedTables:
    """Tables at their resolved locations."""

    spark: SparkSession
    locations: Mapping[SourceTable, tuple[Location, ...]]
    period: Period
    calendar: Calendar
    without_positions: Collection[SourceTable] = ()
    """Tables whose rows need no position, because they get no id."""

    @classmethod
    def of(cls, spark: SparkSession, plan: Plan, calendar: Calendar) -> LocatedTables:
        """Returns the tables that a plan reads."""
        return cls(spark, plan.locations, plan.context.period, calendar, plan.tables_without_positions)

    def rows(self, source: SourceTable) -> DataFrame:
        return self._opened[source].result()

    @cached_property
    def _opened(self) -> dict[SourceTable, Future[DataFrame]]:
        """Opens all tables at once: it is mostly waiting, for file systems and for Spark to look into a file."""
        with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
            return {source: pool.submit(self._open, source) for source in self.locations}

    def _open(self, source: SourceTable) -> DataFrame:
        within = self.periods(source)
        locations = [
            location if location.period in within else replace(location, period=None)
            for location in self.locations[source]
        ]
        return read_all(self.spark, locations, source.table, numbered=source not in self.without_positions)

    def periods(self, source: SourceTable) -> Sequence[str]:
        """Returns the child periods that the locations were expanded to, else the run's own period.

        A location of a longer period (the file of a year in the run of a month) has rows of several periods, so its
        rows must have a period column.
        """
        rendered = [location.period for location in self.locations[source] if location.period is not None]
        parts = [name for name in rendered if self.period.contains(self.calendar.period(name))]
        return parts or [self.period.identifier]

    def is_small(self, source: SourceTable) -> bool:
        return are_small(self.locations[source])

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        return [(location, source) for source, locations in self.locations.items() for location in locations]
