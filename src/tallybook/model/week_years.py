"""Years of 52 or 53 whole weeks, cut into quarters and months of 4 or 5 weeks, or into 13 periods of 4 weeks.

calendar:
  id: retail                                   # the calendar of the National Retail Federation
  weeks: 4-5-4
  year_ends: {on: saturday, nearest: 01-31}
  fiscal_year_named_by: start
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate, pairwise
from typing import Literal

from pydantic import Field, model_validator

from tallybook.model.base import Entity, Text
from tallybook.model.level import Level, NamedBy, Unit, days_between
from tallybook.model.template import token_names

WeekPattern = Literal["4-4-5", "4-5-4", "5-4-4", "13x4"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK = timedelta(days=7)
_ONE_DAY = timedelta(days=1)
_SHORT, _LONG = 52, 53

_NAMES: dict[Unit, str] = {
    "year": "FY{{YYYY}}",
    "quarter": "FY{{YYYY}}-Q{{Q}}",
    "month": "FY{{YYYY}}-P{{PP}}",
    "period": "FY{{YYYY}}-P{{PP}}",
    "week": "FY{{YYYY}}-W{{WW}}",
    "day": "{{calendar_year}}-{{MM}}-{{DD}}",
}


class YearEnd(Entity):
    """The day on which a year of whole weeks ends: the weekday nearest to a date, or the last one of a month."""

    on: Weekday = Field(description="The weekday on which every week and every year ends.")
    nearest: Text | None = Field(
        None, description="Month and day, such as 01-31: the year ends on the nearest weekday."
    )
    last_of: int | None = Field(None, ge=1, le=12, description="A month, 1 to 12: the year ends on its last weekday.")

    @model_validator(mode="after")
    def _is_one_rule(self) -> YearEnd:
        if (self.nearest is None) == (self.last_of is None):
            raise ValueError(
                "a year ends on the weekday `nearest` to a date, or on the last one of a month (`last_of`)"
            )
        if self.nearest is not None and _month_and_day(self.nearest) is None:
            raise ValueError(f"'{self.nearest}' is not a day of every year; write month and day, such as 01-31")
        return self

    def in_year(self, year: int) -> date:
        """The last day of the fiscal year that ends in, or about, a calendar year."""
        weekday = WEEKDAYS.index(self.on)
        if self.last_of is not None:
            after = date(year + self.last_of // 12, self.last_of % 12 + 1, 1)
            return after - timedelta(days=(after.weekday() - weekday - 1) % 7 + 1)
        month, day = _month_and_day(self.nearest or "") or (1, 1)
        forward = (weekday - date(year, month, day).weekday()) % 7
        return date(year, month, day) + timedelta(days=forward if forward <= 3 else forward - 7)


def _month_and_day(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"(\d{1,2})-(\d{1,2})", text)
    try:
        return (date(2001, int(match[1]), int(match[2])).month, int(match[2])) if match else None
    except ValueError:
        return None


def week_levels(pattern: WeekPattern) -> tuple[Level, ...]:
    """The levels of a calendar of weeks that names none itself."""
    units = [unit for unit in _NAMES if unit not in without_units(pattern)]
    return tuple(Level(name=unit, identifier=_NAMES[unit]) for unit in units)


def without_units(pattern: WeekPattern) -> tuple[Unit, ...]:
    """The levels that years of this pattern do not have."""
    return ("quarter", "month") if pattern == "13x4" else ("period",)


@dataclass(frozen=True)
class _Year:
    """A year with its name and the weeks of its months."""

    name: int
    first: date
    months: tuple[int, ...]

    @property
    def last(self) -> date:
        return self.first + sum(self.months) * _WEEK - _ONE_DAY

    def weeks(self, unit: Unit) -> list[int]:
        """The number of weeks of each part of the year."""
        if unit == "year":
            return [sum(self.months)]
        if unit == "quarter":
            return [sum(self.months[at : at + 3]) for at in range(0, 12, 3)]
        return [1] * sum(self.months) if unit == "week" else list(self.months)


@dataclass(frozen=True)
class WeekYears:
    """All years of a calendar of weeks: by a rule for their last days, or by their first days."""

    pattern: WeekPattern
    ends: YearEnd | None
    first_days: tuple[tuple[int, date], ...]
    """Name and first day of each year, in order, if there is no rule."""
    named_by: NamedBy = "end"
    long_month: int | None = None
    """The number of the month that takes week 53; the last one by default."""

    def spans(self, unit: Unit, start: date, end: date) -> Iterator[tuple[date, date]]:
        """First and last day of every part of a year that shares a day with start..end, in order."""
        for year in self._years(start, end):
            if unit == "day":
                yield from ((day, day) for day in days_between(max(start, year.first), min(end, year.last)))
                continue
            first = year.first
            for weeks in year.weeks(unit):
                last = first + weeks * _WEEK - _ONE_DAY
                if first <= end and start <= last:
                    yield first, last
                first = last + _ONE_DAY

    def tokens(self, day: date) -> dict[str, str]:
        """The values of the identifier tokens on a day. Year, quarter, month and week are those of the calendar."""
        year = next(self._years(day, day))
        week = (day - year.first).days // 7
        month = bisect_right(list(accumulate(year.months)), week)
        return {
            "YYYY": f"{year.name:04d}",
            "YY": f"{year.name % 100:02d}",
            "Q": str(month // 3 + 1),
            "QQ": f"Q{month // 3 + 1}",
            "PP": f"{month + 1:02d}",
            "WW": f"{week + 1:02d}",
            "calendar_year": f"{day.year:04d}",
            "MM": f"{day.month:02d}",
            "DD": f"{day.day:02d}",
        }

    def _years(self, start: date, end: date) -> Iterator[_Year]:
        listed = self._by_rule(start, end) if self.ends is not None else self._by_first_day()
        return (year for year in listed if year.first <= end and start <= year.last)

    def _by_rule(self, start: date, end: date) -> Iterator[_Year]:
        assert self.ends is not None
        for year in range(max(2, start.year - 1), min(9997, end.year + 1) + 1):
            first, last = self.ends.in_year(year - 1) + _ONE_DAY, self.ends.in_year(year)
            yield self._year(year if self.named_by == "end" else year - 1, first, (last - first).days // 7 + 1)

    def _by_first_day(self) -> Iterator[_Year]:
        days = [day for _name, day in self.first_days]
        for (name, first), following in zip(self.first_days, [*days[1:], None], strict=True):
            yield self._year(name, first, (following - first).days // 7 if following is not None else _SHORT)

    def _year(self, name: int, first: date, weeks: int) -> _Year:
        months = [4] * 13 if self.pattern == "13x4" else [int(weeks) for weeks in self.pattern.split("-")] * 4
        if weeks == _LONG:
            months[(self.long_month or len(months)) - 1] += 1
        return _Year(name, first, tuple(months))


def level_faults(pattern: WeekPattern, level: Level) -> Iterator[str]:
    """Yields what is wrong with a level of a calendar of weeks."""
    used = token_names(level.identifier)
    if level.name in without_units(pattern):
        yield f"years of {pattern} have no level '{level.name}'"
    if level.name == "month" and "PP" not in used:
        yield f"'{level.identifier}' needs {{{{PP}}}}: two months of weeks can begin in the same calendar month"
    if level.name == "day" and "calendar_year" not in used:
        yield f"'{level.identifier}' needs {{{{calendar_year}}}}: a year of 53 weeks has some dates twice"


def year_faults(pattern: WeekPattern, years: dict[int, date], long_month: int | None) -> Iterator[str]:
    """Yields what is wrong with the first days of years."""
    ordered = sorted(years.items())
    far = [name for name, first in ordered if abs(first.year - name) > 1]
    yield from (f"year {name} begins on {years[name]}, too far from that year" for name in far)
    for (name, first), (following, day) in pairwise(ordered):
        if following != name + 1 or (day - first).days not in (_SHORT * 7, _LONG * 7):
            yield (
                f"year {following} begins {(day - first).days} days after year {name}; each year is followed by the "
                "next one, 364 days later (52 weeks) or 371 (53 weeks)"
            )
    months = 13 if pattern == "13x4" else 12
    if long_month is not None and long_month > months:
        yield f"`long_month` is {long_month}, but a year of {pattern} has {months} months or periods"
