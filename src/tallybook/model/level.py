"""The levels of a computed calendar, and years that consist of months."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, timedelta
from itertools import combinations
from typing import Literal, Protocol
from unicodedata import category

from pydantic import Field, model_validator

from tallybook.errors import did_you_mean
from tallybook.model.base import Entity, NonEmpty
from tallybook.model.template import fill, token_names, tokens

Unit = Literal["year", "quarter", "month", "period", "week", "day"]
UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "period", "week", "day")
"""Coarsest first. A period is one of 13 in a year; it and weeks exist in calendars of weeks only."""
NamedBy = Literal["start", "end"]

_MONTHS: dict[Unit, int] = {"year": 12, "quarter": 3, "month": 1}
_ONE_DAY = timedelta(days=1)
_START = re.compile(r"(0?[1-9]|1[0-2])(?:-(0?[1-9]|1[0-9]|2[0-8]))?")
_DIGITS = "0123456789"
_DIGIT = "\0"
"""Stands in a shape for a digit to come; a character no identifier has."""
_SHAPES = {
    "YYYY": _DIGIT * 4,
    "YY": _DIGIT * 2,
    "calendar_year": _DIGIT * 4,
    "Q": _DIGIT,
    "QQ": f"Q{_DIGIT}",
    "PP": _DIGIT * 2,
    "WW": _DIGIT * 2,
    "MM": _DIGIT * 2,
    "DD": _DIGIT * 2,
}
_YEAR = frozenset({"YYYY", "YY", "calendar_year"})
_NEEDED: dict[Unit, tuple[frozenset[str], ...]] = {
    "year": (_YEAR,),
    "quarter": (_YEAR, frozenset({"Q", "QQ", "PP", "MM"})),
    "month": (_YEAR, frozenset({"PP", "MM"})),
    "period": (_YEAR, frozenset({"PP"})),
    "week": (_YEAR, frozenset({"WW"})),
    "day": (_YEAR, frozenset({"PP", "MM"}), frozenset({"DD"})),
}
"""From each set one token, or two periods of the level would have the same name."""


class Years(Protocol):
    """Cuts time into years and their parts, and names these."""

    def spans(self, unit: Unit, start: date, end: date) -> Iterator[tuple[date, date]]:
        """First and last day of every part of a year that shares a day with start..end, in order."""
        ...

    def tokens(self, day: date) -> dict[str, str]:
        """The values of the identifier tokens on a day."""
        ...


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
            yield from ((day, day) for day in days_between(start, end))
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


def days_between(start: date, end: date) -> Iterator[date]:
    """Every day from start to end, both included."""
    return (start + timedelta(days=offset) for offset in range((end - start).days + 1))


class Level(Entity):
    """One level of a calendar, such as quarters named `FY2026-Q1`."""

    name: Unit = Field(
        description="What the level is: year, quarter (3 months), month, period (one of 13 in a year of weeks), week "
        "or day."
    )
    identifier: NonEmpty = Field(
        description="How a period is called, such as `FY{{YYYY}}-Q{{Q}}`. {{YYYY}} and {{YY}} are the fiscal year, "
        "{{Q}} its quarter (1) and {{QQ}} the same with a Q (Q1), {{PP}} the number of the month in the fiscal year "
        "(01 is its first), {{WW}} the number of the week in a year of weeks. {{calendar_year}}, {{MM}} and {{DD}} are "
        "the calendar's year, month and day on the first day of the period."
    )

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Level:
        for token in tokens(self.identifier):
            if token.name not in _SHAPES:
                hint = did_you_mean(token.name or "", _SHAPES)
                raise ValueError(f"'{token.text}' in '{self.identifier}' is not a token of an identifier; {hint}")
        if fault := unusable_identifier(self.identifier):
            raise ValueError(fault)
        used = token_names(self.identifier)
        for choices in _NEEDED[self.name]:
            if not choices & used:
                wanted = " or ".join(f"{{{{{name}}}}}" for name in _SHAPES if name in choices)
                raise ValueError(
                    f"'{self.identifier}' gives the same name to more than one {self.name}: it needs {wanted}"
                )
        return self

    def name_of(self, first_day: date, years: Years) -> str:
        """The identifier of the period that starts on a day."""
        return fill(self.identifier, years.tokens(first_day))

    def year_in(self, identifier: str) -> int | None:
        """The year an identifier of this level speaks of; None when it does not look like one of this level."""
        shape, year_at = self._shape()
        if not _overlap(shape, identifier):
            return None
        start, end = year_at
        year = int(identifier[start:end]) + (2000 if end - start == 2 else 0)
        return year if MINYEAR + 1 < year < MAXYEAR - 1 else None

    def _shape(self) -> tuple[str, tuple[int, int]]:
        """The identifier as a shape, and where in it the year stands."""
        shape, year_at, at = "", (0, 0), 0
        for token in tokens(self.identifier):
            shape += self.identifier[at : token.start]
            filled = _SHAPES[token.name or ""]
            if token.name in _YEAR:
                year_at = len(shape), len(shape) + len(filled)
            shape += filled
            at = token.end
        return shape + self.identifier[at:], year_at


def unusable_identifier(identifier: str) -> str | None:
    """Why a text cannot be the identifier of a period; None if it can.

    Identifiers name folders and files, so none may lead out of the folder it is put in. `2026/01` is possible, because
    the data itself may call the month so.
    """
    if any(category(letter) == "Cc" for letter in identifier):
        return f"{identifier!r} cannot be the identifier of a period: it contains a control character"
    if all(part.strip(". ") for part in re.split(r"[/\\]", identifier)):
        return None
    return (
        f"'{identifier}' cannot be the identifier of a period: identifiers name files, so none is blank, begins or "
        "ends with '/', or leads upwards with '..'"
    )


def could_be_same(levels: Sequence[Level]) -> Iterator[str]:
    """Returns what is wrong with a list of levels: an identifier must belong to one level only."""
    for one, other in combinations(levels, 2):
        if one.name == other.name:
            yield f"level '{one.name}' is defined twice"
        elif _overlap(one._shape()[0], other._shape()[0]):
            yield (
                f"an identifier could be a {one.name} ('{one.identifier}') or a {other.name} ('{other.identifier}'); "
                "make the two look different"
            )


def _overlap(one: str, other: str) -> bool:
    """Some text fits both shapes; a plain text is the shape only it fits."""
    return len(one) == len(other) and all(
        a == b or (a == _DIGIT and b in _DIGITS) or (b == _DIGIT and a in _DIGITS)
        for a, b in zip(one, other, strict=True)
    )
