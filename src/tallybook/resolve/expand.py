"""Second step: for which periods a rule's location is to be rendered."""

from __future__ import annotations

from tallybook.model.period import Calendar, Period
from tallybook.model.resolver import ANY_LEVEL


def expand(data_level: str, period: Period, calendar: Calendar) -> tuple[Period | None, ...]:
    """The periods to render for: None when one place serves all of them.

    Data finer than the run's period is one location for each part of it, never one outside. Data coarser than it
    (the year's file in a month's run) is the one location of the period around it.
    """
    if data_level == ANY_LEVEL:
        return (None,)
    if data_level == period.level:
        return (period,)
    if calendar.finer(data_level, period.level):
        return calendar.children(period, data_level)
    return (calendar.containing(period, data_level),)
