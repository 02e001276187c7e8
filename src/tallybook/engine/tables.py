"""Where a pipeline gets rows from: `LocatedTables` reads locations; other classes have frames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.plan import Plan, RunContext, periods_read
from tallybook.model.location import Location
from tallybook.operations.base import KnownTables
from tallybook.operations.flow import tables_without_positions
from tallybook.operations.schema import SourceTable
from tallybook.storage.inputs import are_small, have_unique_keys, held
from tallybook.storage.read import read_all
from tallybook.storage.scan import ALL, Part

_OPENED_AT_ONCE = 8


class Tables(KnownTables, Protocol):
    """Rows of tables as stored: declared columns, the system columns of the data, and the position if it is needed."""

    def rows(self, source: SourceTable) -> DataFrame:
        """All rows, of all periods."""
        ...

    def periods(self, source: SourceTable) -> Sequence[str]:
        """The periods whose rows belong to the run."""
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
    context: RunContext
    without_positions: Collection[SourceTable] = ()
    """Tables whose rows need no position, because they get no id."""
    _opening: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, spark: SparkSession, plan: Plan, *, needs_working: bool = False) -> LocatedTables:
        """Returns the tables that a plan reads, to publish its outputs or to look at the whole working dataset."""
        wanted = plan.last.columns if needs_working else ()
        return cls(spark, plan.locations, plan.context, tables_without_positions(plan.input, plan.steps, wanted))

    @contextmanager
    def held(self) -> Iterator[tuple[LocatedTables, Mapping[Location, Location]]]:
        """Keeps the rows of all tables as they are in the block. Returns the tables to read in it, and the location
        that is read instead of each one."""
        with held(location for locations in self.locations.values() for location in locations) as instead:
            locations = {source: tuple(instead[one] for one in every) for source, every in self.locations.items()}
            yield replace(self, locations=locations), instead

    def rows(self, source: SourceTable) -> DataFrame:
        with self._opening:  # since Python 3.12 a cached property can be computed by two threads
            opened = self._opened
        return opened[source].result()

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
        numbered = source not in self.without_positions
        return read_all(self.spark, locations, source.table, numbered=numbered, part=self._part(source))

    def _part(self, source: SourceTable) -> Part:
        """Returns the rows that the temporal filter keeps."""
        match source.table.temporal_mode:
            case "period":
                return Part(periods=tuple(self.periods(source)))
            case "bitemporal":
                return Part(as_of=self.context.as_of_for(source))
        return ALL

    def periods(self, source: SourceTable) -> Sequence[str]:
        return periods_read(source, self.locations[source], self.context)

    def is_small(self, source: SourceTable) -> bool:
        return are_small(self.locations[source])

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        return have_unique_keys(self.locations[source], source.table, columns, self.periods(source))

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        return [(location, source) for source, locations in self.locations.items() for location in locations]
