"""Documents about periods and the metadata store: `period`, `store upgrade`, `store join`, `store rename`."""

from __future__ import annotations

from datetime import date

from tallybook.documents.base import Document
from tallybook.model.period import Period, PeriodStatus


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


class PeriodState(PeriodDates):
    """A period with its status."""

    calendar: str
    """The id of the calendar."""
    status: PeriodStatus
    """The status it has now."""

    @classmethod
    def of(cls, calendar: str, period: Period, status: PeriodStatus) -> PeriodState:
        return cls(calendar=calendar, status=status, **period.model_dump())


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
