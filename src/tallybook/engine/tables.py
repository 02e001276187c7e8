"""Where a pipeline gets rows from: places on disk, or frames a caller has in hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.operations.schema import SourceTable
from tallybook.storage.read import read_all


class Tables(Protocol):
    """Rows of tables as they lie: declared columns, system columns that are there, and the position."""

    def rows(self, source: SourceTable) -> DataFrame:
        """All rows, of all periods."""
        ...

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The periods whose rows belong to the run."""
        ...

    @property
    def reads(self) -> Sequence[tuple[Location, Table]]:
        """The places read, for diagnosing a value that cannot be."""
        ...


@dataclass(frozen=True)
class LocatedTables:
    """Tables at their resolved locations."""

    spark: SparkSession
    locations: Mapping[SourceTable, tuple[Location, ...]]
    period: Period
    calendar: Calendar

    def rows(self, source: SourceTable) -> DataFrame:
        within = self.periods(source)
        places = [place if place.period in within else replace(place, period=None) for place in self.locations[source]]
        return read_all(self.spark, places, source.table)

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The parts the place was expanded to, else the run's own period.

        A place rendered for a longer period (the year's file in a month's run) holds rows of several periods, so
        such rows must say themselves which one they belong to.
        """
        rendered = [place.period for place in self.locations[source] if place.period is not None]
        parts = [name for name in rendered if self.period.contains(self.calendar.period(name))]
        return parts or [self.period.identifier]

    @property
    def reads(self) -> Sequence[tuple[Location, Table]]:
        return [(place, source.table) for source, places in self.locations.items() for place in places]
