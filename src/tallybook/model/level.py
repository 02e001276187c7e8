"""A level of a computed calendar: names its periods, and parses the names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, MINYEAR, date
from itertools import combinations
from unicodedata import category

from pydantic import Field, model_validator

from tallybook.errors import did_you_mean
from tallybook.model.base import Entity, NonEmpty
from tallybook.model.fiscal import FiscalYear, Unit
from tallybook.model.template import fill, token_names, tokens

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
    "MM": _DIGIT * 2,
    "DD": _DIGIT * 2,
}
_YEAR = frozenset({"YYYY", "YY", "calendar_year"})
_NEEDED: dict[Unit, tuple[frozenset[str], ...]] = {
    "year": (_YEAR,),
    "quarter": (_YEAR, frozenset({"Q", "QQ", "PP", "MM"})),
    "month": (_YEAR, frozenset({"PP", "MM"})),
    "day": (_YEAR, frozenset({"PP", "MM"}), frozenset({"DD"})),
}
"""From each set one token, or two periods of the level would have the same name."""


class Level(Entity):
    """One level of a calendar, such as quarters named `FY2026-Q1`."""

    name: Unit = Field(description="What the level is: year, quarter (3 months), month or day.")
    identifier: NonEmpty = Field(
        description="How a period is called, such as `FY{{YYYY}}-Q{{Q}}`. {{YYYY}} and {{YY}} are the fiscal year, "
        "{{Q}} its quarter (1) and {{QQ}} the same with a Q (Q1), {{PP}} the number of the month in the fiscal year "
        "(01 is its first). {{calendar_year}}, {{MM}} and {{DD}} are the calendar's year, month and day on the first "
        "day of the period."
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

    def name_of(self, first_day: date, fiscal_year: FiscalYear) -> str:
        """The identifier of the period that starts on a day."""
        return fill(self.identifier, fiscal_year.tokens(first_day))

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
