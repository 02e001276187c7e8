"""The status of a period together with the periods around and inside it.

Closing a quarter closes its months. A run over a quarter needs the quarter and all its months open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tallybook.errors import RunError
from tallybook.model.period import Calendar, Period, PeriodStatus
from tallybook.model.state import StateChange

_STRICTER: tuple[PeriodStatus, ...] = ("open", "closed", "locked")


@dataclass(frozen=True)
class NestedPeriod:
    """A period of a calendar, which knows the periods around and inside it."""

    period: Period
    calendar: Calendar

    @classmethod
    def of(cls, calendar: Calendar, identifier: str) -> NestedPeriod:
        """Returns the period of that name. Raises PeriodNotFound if the calendar does not have it."""
        return cls(calendar.period(identifier), calendar)

    def status(self, changed: Mapping[str, PeriodStatus]) -> PeriodStatus:
        """Returns the status of the period, which is at least that of every period around it. `changed` are the
        statuses that were set; other periods have the one that the calendar gives them."""
        return self._strictest(changed, inside=False)[0]

    def status_for_runs(self, changed: Mapping[str, PeriodStatus]) -> tuple[PeriodStatus, str]:
        """Returns the strictest status of the period and the periods around and inside it, and the one that has it."""
        return self._strictest(changed, inside=True)

    @cached_property
    def inside(self) -> dict[str, tuple[str, ...]]:
        """The names of the shorter periods inside the period, by their level, the longest first."""
        period, calendar = self.period, self.calendar
        finer = (level for level in calendar.level_names if calendar.finer(level, period.level))
        parts = {level: calendar.between(level, period.start_date, period.end_date) for level in finer}
        names = {level: tuple(part.identifier for part in of if period.contains(part)) for level, of in parts.items()}
        return {level: of for level, of in names.items() if of}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the rows of the period can have: its own, and those of the periods inside it."""
        return (self.period.identifier, *(name for of_level in self.inside.values() for name in of_level))

    def changes_of(self, changes: Iterable[StateChange]) -> tuple[StateChange, ...]:
        """Returns the changes of status that concern the period: its own, and those of the periods around it."""
        return tuple(one for one in changes if one.period is not None and self._is_around(one.period))

    def is_related(self, identifier: str) -> bool:
        """True for the period itself and for periods around or inside it."""
        return self._is_around(identifier) or self._is_inside(identifier)

    def _strictest(self, changed: Mapping[str, PeriodStatus], *, inside: bool) -> tuple[PeriodStatus, str]:
        own = self.period.identifier
        initial = {listed.identifier: listed.status for listed in self.calendar.periods}
        statuses = {own: self.calendar.initial_status(own), **initial, **changed}
        counted = [
            (status, name)
            for name, status in statuses.items()
            if name == own or (status != "open" and (self._is_around(name) or (inside and self._is_inside(name))))
        ]
        return max(counted, key=lambda one: (_STRICTER.index(one[0]), one[1] == own))

    def _is_around(self, identifier: str) -> bool:
        other = self._other(identifier)
        return other is not None and other.contains(self.period)

    def _is_inside(self, identifier: str) -> bool:
        other = self._other(identifier)
        return other is not None and self.period.contains(other)

    def _other(self, identifier: str) -> Period | None:
        try:
            return self.calendar.period(identifier)
        except RunError:
            return None  # a period that the calendar no longer has
