"""Periods, and the calendars that know them.

A calendar computes its periods from months (`levels`: years, quarters, months and days counted from a fiscal year
start) or from weeks (`weeks`: 4-4-5 and the like, see `week_years`), or lists them (`periods`: adjustment periods,
whatever the company uses).

    calendar:
      id: fiscal
      fiscal_year_start: 04-01
      fiscal_year_named_by: end            # April 2025 to March 2026 is 2026
      levels:
        - {name: year, identifier: "FY{{YYYY}}"}
        - {name: quarter, identifier: "FY{{YYYY}}-Q{{Q}}"}
        - {name: month, identifier: "{{calendar_year}}-{{MM}}"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from tallybook.errors import did_you_mean, fail
from tallybook.model.base import Entity, Id, NonEmpty, Text, as_text
from tallybook.model.level import UNITS, FiscalYear, Level, NamedBy, Years, could_be_same, unusable_identifier
from tallybook.model.week_years import WeekPattern, WeekYears, YearEnd, level_faults, week_levels, year_faults

PeriodStatus = Literal["open", "closed", "locked"]
_EXAMPLE_DAY = date(2026, 1, 1)


def _as_date(value: object) -> object:
    """A date as YAML or JSON gives it: a date, or text in the one form people agree on."""
    text = as_text(value)
    if not isinstance(text, str):
        return text
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise ValueError(f"'{text}' is not a date; write it as 2026-01-31")
    return day


Day = Annotated[date, BeforeValidator(_as_date, json_schema_input_type=date)]


def check_order(identifier: str, start: date, end: date) -> None:
    """ValueError when a period would start after it ends."""
    if start > end:
        raise ValueError(f"period '{identifier}' starts {start}, after it ends {end}")


class Period(Entity):
    """A stretch of days a run is for. Whether it is open, closed or locked is recorded in the store."""

    identifier: NonEmpty
    level: NonEmpty
    start_date: Day = Field(description="The first day.")
    end_date: Day = Field(description="The last day; it belongs to the period.")
    parent: NonEmpty | None = Field(None, description="Identifier of the next larger period this one is part of.")

    @model_validator(mode="after")
    def _starts_before_it_ends(self) -> Period:
        check_order(self.identifier, self.start_date, self.end_date)
        return self

    @property
    def days(self) -> int:
        return (self.end_date - self.start_date).days + 1

    def contains(self, other: Period) -> bool:
        """Every day of the other period is a day of this one."""
        return self.start_date <= other.start_date and other.end_date <= self.end_date

    def overlaps(self, other: Period) -> bool:
        """They share a day."""
        return self.start_date <= other.end_date and other.start_date <= self.end_date


def uncovered_days(period: Period, parts: Iterable[Period]) -> list[tuple[date, date]]:
    """The stretches of days of a period, first and last day, that are in none of its parts."""
    gaps: list[tuple[date, date]] = []
    expected = period.start_date.toordinal()
    for part in sorted(parts, key=lambda part: part.start_date):
        if part.start_date.toordinal() > expected:
            gaps.append((date.fromordinal(expected), date.fromordinal(part.start_date.toordinal() - 1)))
        expected = max(expected, part.end_date.toordinal() + 1)
    if expected <= period.end_date.toordinal():
        gaps.append((date.fromordinal(expected), period.end_date))
    return gaps


class ListedPeriod(Period):
    """A period written out in a calendar."""

    status: PeriodStatus = Field("open", description="The status it begins with; later changes are recorded apart.")

    def plain(self) -> Period:
        return Period.model_validate(self.model_dump(exclude={"status"}))


class Calendar(Entity):
    """Named periods on one or more levels: computed from `levels`, or listed in `periods`."""

    id: Id
    name: Text | None = None
    fiscal_year_start: Text = Field(
        "01-01",
        description="Month and day the year starts on, such as 04-01, or the month alone (1 to 12).",
    )
    fiscal_year_named_by: NamedBy = Field(
        "end",
        description="Which calendar year names a fiscal year that touches two: `end` (default; April 2025 to March "
        "2026 is 2026) or `start` (it is 2025).",
    )
    weeks: WeekPattern | None = Field(
        None,
        description="Years of whole weeks: the weeks of the three months of each quarter (4-4-5, 4-5-4 or 5-4-4), or "
        "13 periods of 4 weeks (13x4). It needs `year_ends` or `years`.",
    )
    year_ends: YearEnd | None = Field(
        None, description="With `weeks`: the day on which every year ends. A year then has 52 or 53 weeks."
    )
    years: dict[str, Day] = Field(
        default_factory=dict,
        description="With `weeks`, instead of `year_ends`: the first day of each year, by the number of the year. A "
        "year has 53 weeks if the next one begins 53 weeks later; the last one has 52.",
    )
    long_month: int | None = Field(
        None,
        ge=1,
        description="With `weeks`: the number of the month or period that takes week 53; by default the last.",
    )
    levels: tuple[Level, ...] = Field(
        (),
        description="The levels and how their periods are called; with `weeks` by default FY2026, FY2026-Q1, "
        "FY2026-P01, FY2026-W01 and 2026-01-31.",
    )
    periods: tuple[ListedPeriod, ...] = Field(
        (), description="All periods, written out, instead of `levels`. Longer levels count as coarser."
    )

    @model_validator(mode="after")
    def _is_sound(self) -> Calendar:
        FiscalYear.parse(self.fiscal_year_start, self.fiscal_year_named_by)
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def level_names(self) -> tuple[str, ...]:
        """The levels, coarsest first."""
        if not self.periods:
            return tuple(level.name for level in self._ordered)
        longest: dict[str, int] = {}
        for period in self.periods:
            longest[period.level] = max(period.days, longest.get(period.level, 0))
        return tuple(sorted(longest, key=lambda level: -longest[level]))

    def finer(self, level: str, than: str) -> bool:
        """The first level's periods are parts of the second's."""
        return self._rank(level) > self._rank(than)

    def period(self, identifier: str) -> Period:
        """The period of that name; its level follows from the name."""
        period = next(self._named(identifier), None)
        if period is None:
            raise fail(
                "PeriodNotFound", f"calendar '{self.id}' has no period '{identifier}'", hint=self._hint(identifier)
            )
        return period

    def children(self, period: Period, level: str) -> tuple[Period, ...]:
        """The periods of a level inside a period, in order.

        One that lies across the period's edge (a week in two months) is refused: taking it would bring days of
        another period, leaving it out would lose days of this one.
        """
        children = self._overlapping(level, period)
        across = [child.identifier for child in children if not period.contains(child)]
        if across or not children:
            reason = f"'{across[0]}' is only partly inside it" if across else "there are none"
            raise fail(
                "PeriodNotFound",
                f"calendar '{self.id}' cannot divide {period.level} '{period.identifier}' into periods of level "
                f"'{level}': {reason}",
            )
        return children

    def between(self, level: str, first: date, last: date) -> tuple[Period, ...]:
        """The periods of a level that share a day with first..last, in order."""
        return self._overlapping(level, Period(identifier="between", level=level, start_date=first, end_date=last))

    def year_of(self, day: date) -> tuple[date, date]:
        """The first and last day of the year that a day belongs to: the fiscal year, or the listed one.

        Of a listed calendar the years are its level `year`, else the level whose periods are about a year long.
        """
        if not self.periods:
            year = next(self._years.spans("year", day, day), None)
        else:
            level = next((name for name in ("year", *self.level_names) if self._are_years(name)), None)
            listed = self.between(level, day, day) if level is not None else ()
            year = (listed[0].start_date, listed[0].end_date) if listed else None
        if year is None:
            raise fail(
                "PeriodNotFound",
                f"calendar '{self.id}' lists no year with {day}",
                hint="list the years, too: {identifier: FY2026, level: year, start_date: …, end_date: …}",
            )
        return year

    def _are_years(self, level: str) -> bool:
        lengths = [listed.days for listed in self.periods if listed.level == level]
        return bool(lengths) and (level == "year" or all(350 <= days <= 380 for days in lengths))

    @property
    def counts_days_by_date(self) -> bool:
        """True if the same day last year is the one with the same date; otherwise it has the same number."""
        return not self.periods and self.weeks is None

    def containing(self, period: Period, level: str) -> Period:
        """The period of a coarser level that a period is part of."""
        parents = [parent for parent in self._overlapping(level, period) if parent.contains(period)]
        if not parents:
            raise fail(
                "PeriodNotFound",
                f"calendar '{self.id}' has no period of level '{level}' that contains all of '{period.identifier}' "
                f"({period.start_date} to {period.end_date})",
            )
        return parents[0]

    def example(self, level: str) -> Period:
        """Returns an example of a period of the level; of listed periods a longest one."""
        self._rank(level)
        if self.periods:
            return max((listed for listed in self.periods if listed.level == level), key=lambda listed: listed.days)
        day = min(self.years.values(), default=_EXAMPLE_DAY)
        return self.between(level, day, day)[0]

    def initial_status(self, identifier: str) -> PeriodStatus:
        """The status a period has before anyone changed it."""
        return next((listed.status for listed in self.periods if listed.identifier == identifier), "open")

    @property
    def _ordered(self) -> tuple[Level, ...]:
        levels = self.levels or (week_levels(self.weeks) if self.weeks is not None else ())
        return tuple(sorted(levels, key=lambda level: UNITS.index(level.name)))

    @property
    def _years(self) -> Years:
        if self.weeks is None:
            return FiscalYear.parse(self.fiscal_year_start, self.fiscal_year_named_by)
        first_days = tuple(sorted((int(name), day) for name, day in self.years.items()))
        return WeekYears(self.weeks, self.year_ends, first_days, self.fiscal_year_named_by, self.long_month)

    def _rank(self, level: str) -> int:
        names = self.level_names
        if level not in names:
            raise fail(
                "CalendarNotFound", f"calendar '{self.id}' has no level '{level}'", hint=did_you_mean(level, names)
            )
        return names.index(level)

    def _named(self, identifier: str) -> Iterator[Period]:
        yield from (listed.plain() for listed in self.periods if listed.identifier == identifier)
        for level in self._ordered:
            year = level.year_in(identifier)
            if year is None:
                continue
            for start, end in self._years.spans(level.name, date(year - 1, 1, 1), date(year + 1, 12, 31)):
                if level.name_of(start, self._years) == identifier:
                    yield self._computed(level, start, end)

    def _overlapping(self, level: str, period: Period) -> tuple[Period, ...]:
        rank = self._rank(level)
        if self.periods:
            same_level = (listed for listed in self.periods if listed.level == level and listed.overlaps(period))
            return tuple(listed.plain() for listed in sorted(same_level, key=lambda listed: listed.start_date))
        chosen = self._ordered[rank]
        spans = self._years.spans(chosen.name, period.start_date, period.end_date)
        return tuple(self._computed(chosen, start, end) for start, end in spans)

    def _computed(self, level: Level, start: date, end: date) -> Period:
        rank = self._ordered.index(level)
        parent = self._ordered[rank - 1].name_of(start, self._years) if rank else None
        name = level.name_of(start, self._years)
        return Period(identifier=name, level=level.name, start_date=start, end_date=end, parent=parent)

    def _hint(self, identifier: str) -> str:
        listed = [period.identifier for period in self.periods]
        near = did_you_mean(identifier, listed)
        if near:
            return near
        examples = (f"'{self.example(level).identifier}' ({level})" for level in self.level_names)
        return "periods look like " + ", ".join(examples)

    def _faults(self) -> Iterator[str]:
        if self.periods and (self.levels or self.weeks is not None):
            yield "a calendar has either `levels` or `periods`, and `weeks` go with `levels`"
        elif self.periods:
            yield from self._list_faults()
        elif self.weeks is None and not self.levels:
            yield "a calendar has either `levels` or `periods`"
        else:
            yield from could_be_same(self.levels)
            yield from self._week_faults()

    def _week_faults(self) -> Iterator[str]:
        if self.weeks is None:
            strange = [name for name in ("year_ends", "years", "long_month") if name in self.model_fields_set]
            yield from (f"`{name}` goes with `weeks`" for name in strange)
            units = [level.name for level in self.levels if level.name in ("period", "week")]
            yield from (f"level '{unit}' goes with `weeks`; years of months have no such level" for unit in units)
            return
        if "fiscal_year_start" in self.model_fields_set:
            yield "`fiscal_year_start` is for years of months; with `weeks` use `year_ends` or `years`"
        if (self.year_ends is None) == (not self.years):
            yield "`weeks` needs either `year_ends`, such as {on: saturday, nearest: 01-31}, or `years`"
        wrong = [name for name in self.years if not re.fullmatch(r"[12]\d{3}", name)]
        yield from (f"'{name}' in `years` is not a year; write a number such as 2026" for name in wrong)
        if not wrong:
            years = {int(name): day for name, day in self.years.items()}
            yield from year_faults(self.weeks, years, self.long_month)
        for level in self.levels:
            yield from level_faults(self.weeks, level)

    def _list_faults(self) -> Iterator[str]:
        if {"fiscal_year_start", "fiscal_year_named_by"} & self.model_fields_set:
            yield "`fiscal_year_start` and `fiscal_year_named_by` go with `levels`; listed periods have their own dates"
        by_identifier = {listed.identifier: listed for listed in self.periods}
        if len(by_identifier) < len(self.periods):
            names = [listed.identifier for listed in self.periods]
            twice = sorted({name for name in names if names.count(name) > 1})
            yield f"period listed more than once: {', '.join(twice)}"
        yield from filter(None, map(unusable_identifier, by_identifier))
        for level in self.level_names:
            same_level = sorted((p for p in self.periods if p.level == level), key=lambda listed: listed.start_date)
            for earlier, later in pairwise(same_level):
                if earlier.overlaps(later) and earlier.identifier != later.identifier:
                    yield f"periods '{earlier.identifier}' and '{later.identifier}' of level '{level}' overlap"
        for child in self.periods:
            yield from self._parent_faults(child, by_identifier)

    def _parent_faults(self, child: Period, by_identifier: dict[str, ListedPeriod]) -> Iterator[str]:
        if child.parent is None:
            return
        parent = by_identifier.get(child.parent)
        if parent is None:
            yield f"the parent '{child.parent}' of period '{child.identifier}' is not listed"
        elif not self.finer(child.level, parent.level):
            yield f"the parent '{parent.identifier}' of period '{child.identifier}' is not of a coarser level"
        elif not parent.contains(child):
            yield (
                f"period '{child.identifier}' ({child.start_date} to {child.end_date}) is not inside its parent "
                f"'{parent.identifier}' ({parent.start_date} to {parent.end_date})"
            )


GREGORIAN = Calendar(
    id="gregorian",
    name="Calendar years, quarters, months and days",
    levels=(
        Level(name="year", identifier="{{YYYY}}"),
        Level(name="quarter", identifier="{{YYYY}}-Q{{Q}}"),
        Level(name="month", identifier="{{YYYY}}-{{MM}}"),
        Level(name="day", identifier="{{YYYY}}-{{MM}}-{{DD}}"),
    ),
)
"""The default calendar."""
