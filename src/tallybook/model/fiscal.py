"""The arithmetic of years that may start on any day: cuts time into years, quarters, months and days."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Unit = Literal["year", "quarter", "month", "day"]
UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "day")
"""Coarsest first."""
NamedBy = Literal["start", "end"]

_MONTHS: dict[Unit, int] = {"year": 12, "quarter": 3, "month": 1}
_ONE_DAY = timedelta(days=1)
_START = re.compile(r"(0?[1-9]|1[0-2])(?:-(0?[1-9]|1[0-9]|2[0-8]))?")


@dataclass(frozen=True)
class FiscalYear:
    """A year that starts on a given month and day; its quarters and months are counted from there."""

    month: int = 1
    day: int = 1
    named_by: NamedBy = "end"

    @classmethod
    def parse(cls, start: str, named_by: NamedBy) -> FiscalYear:
        """From `04-01`, or `4` for the first of that month; ValueError otherwise."""
        match = _START.fullmatch(start)
        if not match:
            raise ValueError(
                f"'{start}' is not a start of a fiscal year; write month and day such as 04-01, or the month alone "
                "(days 29 to 31 are not in every month)"
            )
        return cls(int(match[1]), int(match[2] or 1), named_by)

    def spans(self, unit: Unit, start: date, end: date) -> Iterator[tuple[date, date]]:
        """First and last day of every year, quarter, month or day that shares a day with start..end, in order."""
        if unit == "day":
            yield from ((day, day) for day in _days(start, end))
            return
        size = _MONTHS[unit]
        at = self._months_since_origin(start) // size * size
        while (first := self._first_day(at)) <= end:
            at += size
            yield first, self._first_day(at) - _ONE_DAY

    def tokens(self, day: date) -> dict[str, str]:
        """The values of the identifier tokens on a day. Year, quarter and PP are fiscal; the others are the date's."""
        started, month = divmod(self._months_since_origin(day), 12)
        crosses_new_year = (self.month, self.day) != (1, 1)
        year = started + (1 if self.named_by == "end" and crosses_new_year else 0)
        quarter = month // 3 + 1
        return {
            "YYYY": f"{year:04d}",
            "YY": f"{year % 100:02d}",
            "Q": str(quarter),
            "QQ": f"Q{quarter}",
            "PP": f"{month + 1:02d}",
            "calendar_year": f"{day.year:04d}",
            "MM": f"{day.month:02d}",
            "DD": f"{day.day:02d}",
        }

    def _months_since_origin(self, day: date) -> int:
        """Whole fiscal months between the fiscal year that starts in year 0 and the day."""
        return day.year * 12 + day.month - self.month - (1 if day.day < self.day else 0)

    def _first_day(self, months: int) -> date:
        year, month = divmod(months + self.month - 1, 12)
        return date(year, month + 1, self.day)


def _days(start: date, end: date) -> Iterator[date]:
    return (start + timedelta(days=offset) for offset in range((end - start).days + 1))
