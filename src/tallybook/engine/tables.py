"""Where a pipeline gets rows from: places on disk, or frames a caller has in hand."""

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
from tallybook.storage.inputs import local_size
from tallybook.storage.read import read_all

_OPENED_AT_ONCE = 8
_SMALL_BYTES = 4 * 2**20
"""What Spark reckons the opening of a file to cost."""


class Tables(Protocol):
    """Rows of tables as they lie: declared columns, system columns that are there, and the position if it is needed."""

    def rows(self, source: SourceTable) -> DataFrame:
        """All rows, of all periods."""
        ...

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The periods whose rows belong to the run."""
        ...

    def is_small(self, source: SourceTable) -> bool:
        """Whether all its rows are work for one task, so that grouping them is not worth a shuffle."""
        ...

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        """The places read, for diagnosing a value that cannot be."""
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
        """The tables a plan reads."""
        return cls(spark, plan.locations, plan.context.period, calendar, plan.tables_without_positions)

    def rows(self, source: SourceTable) -> DataFrame:
        return self._opened[source].result()

    @cached_property
    def _opened(self) -> dict[SourceTable, Future[DataFrame]]:
        """All of them at once, for it is mostly waiting: for file systems, and for Spark to look into a file."""
        with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
            return {source: pool.submit(self._open, source) for source in self.locations}

    def _open(self, source: SourceTable) -> DataFrame:
        within = self.periods(source)
        places = [place if place.period in within else replace(place, period=None) for place in self.locations[source]]
        return read_all(self.spark, places, source.table, numbered=source not in self.without_positions)

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The parts the place was expanded to, else the run's own period.

        A place rendered for a longer period (the year's file in a month's run) holds rows of several periods, so
        such rows must say themselves which one they belong to.
        """
        rendered = [place.period for place in self.locations[source] if place.period is not None]
        parts = [name for name in rendered if self.period.contains(self.calendar.period(name))]
        return parts or [self.period.identifier]

    def is_small(self, source: SourceTable) -> bool:
        sizes = [local_size(place) for place in self.locations[source]]
        return all(size is not None for size in sizes) and sum(filter(None, sizes)) <= _SMALL_BYTES

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        return [(place, source) for source, places in self.locations.items() for place in places]
