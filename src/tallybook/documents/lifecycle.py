"""Documents about periods and the metadata store: `period`, `store upgrade`, `store join`, `store rename`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from pydantic import Field

from tallybook.documents.base import Document
from tallybook.model.period import Period, PeriodStatus
from tallybook.model.state import StateChange

if TYPE_CHECKING:
    from tallybook.runs.unfinished import Unfinished


class PeriodDates(Document):
    """A period and its days."""

    identifier: str
    """The name of the period."""
    level: str
    """The level of the calendar it is on, such as `month`."""
    start_date: date
    """The first day."""
    end_date: date
    """The last day; it belongs to the period."""
    parent: str | None
    """The next larger period it is part of."""


class OpenEnd(Document):
    """An active project that is not done with a period."""

    project: str
    """The project."""
    reason: str
    """Why it is not done: it has not run, or its run is stale."""

    @classmethod
    def of(cls, unfinished: Unfinished) -> OpenEnd:
        return cls(project=unfinished.project, reason=unfinished.reason)


class PeriodState(PeriodDates):
    """A period with its status."""

    calendar: str
    """The id of the calendar."""
    status: PeriodStatus
    """The status it has now."""
    changes: tuple[StateChange, ...]
    """Who closed and locked it, or a period around it, when and why; the oldest first."""
    unfinished: tuple[OpenEnd, ...] = Field((), exclude_if=lambda unfinished: not unfinished)
    """The active projects that have not run for the period, or whose run is stale, when it was closed or locked; left
    out where there are none."""

    @classmethod
    def of(
        cls,
        calendar: str,
        period: Period,
        status: PeriodStatus,
        changes: tuple[StateChange, ...] = (),
        unfinished: Iterable[Unfinished] = (),
    ) -> PeriodState:
        found = tuple(map(OpenEnd.of, unfinished))
        return cls(calendar=calendar, status=status, changes=changes, unfinished=found, **period.model_dump())


class PeriodList(Document):
    """The periods that were closed or locked."""

    calendar: str
    """The id of the calendar."""
    periods: dict[str, PeriodStatus]
    """The status of each period that was changed; all others are as the calendar has them."""


class UpgradedStore(Document):
    """What `store upgrade` did."""

    upgraded: bool
    """True: the tables of the store are those of this version."""


class JoinedStore(Document):
    """The workspace of the store that a folder belongs to from now on."""

    workspace: str
    """Its name."""


class RenamedWorkspace(Document):
    """A workspace of the store that has a new name."""

    workspace: str
    """The new name."""
    old: str
    """The name it had."""
