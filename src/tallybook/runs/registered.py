"""Finds the rows of registered datasets: those of one version, or those of the versions written for certain periods.

A registered version belongs to the period of the run that wrote it. A table by period is read period by period, each
from the newest version written for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tallybook.errors import RunError, fail
from tallybook.model.dataset import Dataset
from tallybook.model.location import Location
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import Calendar, Period
from tallybook.model.relative_period import RunPeriod
from tallybook.model.state import Registration
from tallybook.operations.schema import SourceTable


@dataclass(frozen=True)
class PeriodLocations:
    """Where the newest rows of a dataset are, by the period of the run that wrote them."""

    by_period: Mapping[str, Location]
    calendar: Calendar

    @classmethod
    def known(cls, by_period: Mapping[str, Location], calendar: Calendar) -> PeriodLocations:
        """Returns the locations of the periods that the calendar still has."""
        return cls({name: location for name, location in by_period.items() if _has(calendar, name)}, calendar)

    def of(self, periods: Iterable[Period]) -> tuple[tuple[Location, ...], tuple[Period, ...]]:
        """Returns where the rows of these periods are, and the periods that nothing was written for.

        A period is read from what was written for it; else from what was written for all its parts, such as the months
        of a quarter; else from the shortest longer period around it. Each location gives only the rows of the periods
        that are read from it, because a version can also have rows of others.
        """
        rows: dict[str, list[str]] = {}
        missing: list[Period] = []
        for period in periods:
            found = self._parts(period)
            around = self._around(period) if isinstance(found, list) else None
            if around is not None:
                found = {period.identifier: around}
            if isinstance(found, list):
                missing += found
                continue
            for name, written in found.items():
                rows.setdefault(written, []).extend(NestedPeriod.of(self.calendar, name).names)
        locations = (replace(self.by_period[name], periods=tuple(dict.fromkeys(of))) for name, of in rows.items())
        return tuple(locations), tuple(missing)

    def _parts(self, period: Period) -> dict[str, str] | list[Period]:
        """Returns the period or its parts, each with the period it was written as; or those that were not written."""
        if period.identifier in self.by_period:
            return {period.identifier: period.identifier}
        if not any(period.contains(written) for written in self._written):
            return [period]
        missing: list[Period] = []
        for children in self._divisions(period):
            found = [self._parts(child) for child in children]
            parts = {name: written for part in found if isinstance(part, dict) for name, written in part.items()}
            lacking = [child for part in found if isinstance(part, list) for child in part]
            if not lacking:
                return parts
            missing = lacking if parts and not missing else missing
        return missing or [period]

    def _divisions(self, period: Period) -> Iterator[Sequence[Period]]:
        """Yields the ways to divide a period into shorter ones, the longest first."""
        for level in self.calendar.level_names:
            if self.calendar.finer(level, period.level):
                children = self.calendar.between(level, period.start_date, period.end_date)
                if children and all(period.contains(child) for child in children):
                    yield children

    def _around(self, period: Period) -> str | None:
        around = [written for written in self._written if written.contains(period)]
        return min(around, key=lambda written: written.days).identifier if around else None

    @cached_property
    def _written(self) -> tuple[Period, ...]:
        return tuple(self.calendar.period(name) for name in self.by_period)


@dataclass(frozen=True)
class RegisteredDatasets:
    """The versions that runs registered."""

    registrations: Sequence[Registration] = ()

    @cached_property
    def _by_version(self) -> dict[tuple[str, int], Registration]:
        return {(entry.dataset_id, entry.version): entry for entry in self.registrations}

    def has(self, dataset: Dataset) -> bool:
        """True if the version was registered by a run."""
        return (dataset.id, dataset.version) in self._by_version

    def locations(self, source: SourceTable, run: RunPeriod) -> tuple[Location, ...]:
        """Returns where the rows of a table of a registered dataset are. Raises DataNotFound if it is read by period
        and nothing was written for a period."""
        dataset = source.dataset
        if source.pinned or source.table.temporal_mode != "period":
            return (location_of(self._by_version[dataset.id, dataset.version]),)
        locations, missing = self.by_period(dataset.id, run.calendar).of(source.periods(run))
        if missing:
            maker = self._by_version[dataset.id, dataset.version].project_id
            what = f"no version of '{dataset.id}' was written"
            raise not_written(what, f"project '{maker}'", f"tallybook run {maker}", missing)
        return locations

    def by_period(self, dataset_id: str, calendar: Calendar) -> PeriodLocations:
        """Returns where the newest rows of a dataset are, by period."""
        written = (entry for entry in self.registrations if entry.dataset_id == dataset_id)
        on_calendar = (entry for entry in written if entry.calendar_id == calendar.id)
        newest_last = sorted(on_calendar, key=lambda entry: entry.version)
        by_period = {entry.period: replace(location_of(entry), period=entry.period) for entry in newest_last}
        return PeriodLocations.known(by_period, calendar)


def location_of(entry: Registration) -> Location:
    """Returns where the rows of a registered version stay readable."""
    return replace(Location.from_json(entry.reads), dataset_version=entry.version)


def not_written(what: str, maker: str, command: str, missing: Sequence[Period]) -> RunError:
    """Returns the failure to read periods that nothing was written for, with the command that writes them."""
    them = "it" if len(missing) == 1 else "them"
    names = ", ".join(period.identifier for period in missing)
    options = " ".join(f"--period {period.identifier}" for period in missing)
    return fail(
        "DataNotFound",
        f"{what} for {names}: {maker} has not been run for {them}",
        hint=f"`{command} {options}` writes {them}",
    )


def _has(calendar: Calendar, name: str) -> bool:
    try:
        calendar.period(name)
    except RunError:
        return False
    return True
