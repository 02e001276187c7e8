"""Years, quarters and months by their names, counted as on fingers."""

from __future__ import annotations

import calendar
from datetime import date

SIZES = {4: 12, 7: 1}
"""Months of a period by the length of its name; a quarter is told by its Q."""


def _months(name: str) -> int:
    return 3 if "Q" in name else SIZES[len(name)]


def _first_month(name: str) -> int:
    """Months since the year 0."""
    year, _, rest = name.partition("-")
    if not rest:
        return int(year) * 12
    return int(year) * 12 + (int(rest[1:]) - 1) * 3 if "Q" in rest else int(year) * 12 + int(rest) - 1


def _name(month: int, months: int) -> str:
    year, month = divmod(month, 12)
    return {12: f"{year:04d}", 3: f"{year:04d}-Q{month // 3 + 1}", 1: f"{year:04d}-{month + 1:02d}"}[months]


def shifted(name: str, offset: int) -> str:
    months = _months(name)
    return _name(_first_month(name) + offset * months, months)


def days(name: str) -> tuple[date, date]:
    """The first and last day."""
    first, last = _first_month(name), _first_month(name) + _months(name) - 1
    year, month = last // 12, last % 12 + 1
    return date(first // 12, first % 12 + 1, 1), date(year, month, calendar.monthrange(year, month)[1])


def meant(name: str, period: object) -> list[str]:
    """The periods that a source reads, by what it says."""
    if period == "same_last_year":
        return [shifted(name, -12 // _months(name))]
    if period == "year_to_date":
        number = _first_month(name) % 12 // _months(name)
        return [shifted(name, -back) for back in range(number, -1, -1)]
    steps = {None: 0, "prior": -1, "next": 1}
    return [shifted(name, period if isinstance(period, int) else steps[period])]  # type: ignore[index]  # a word by now
