"""Patterns of dates, such as dd.mm.yyyy, for TO_DATE and TEXT.

The letters are d, m and y in small or capital letters, since spreadsheets write months as mm and SQL as MM. There is no
time of day, so that an m is always a month. Everything but the letters a to z is itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import Refusal

if TYPE_CHECKING:
    from pyspark.sql import Column

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHORT_MONTHS = tuple(month[:3] for month in MONTHS)
MAX_LENGTH = 50
_TOKENS = re.compile(r"([a-z])\1*|[^a-z]", re.DOTALL)
_JAVA = {"yyyy": "yyyy", "yy": "yy", "mmmm": "MMMM", "mmm": "MMM", "mm": "MM", "m": "M", "dd": "dd", "d": "d"}
_READ = {"yyyy": "([0-9]{4})", "yy": "([0-9]{2})", "mm": "([0-9]{2})", "m": "([0-9]{1,2})"}
_READ |= {"dd": "([0-9]{2})", "d": "([0-9]{1,2})", "mmm": "([A-Za-z]{3})", "mmmm": "([A-Za-z]{3,9})"}


@dataclass(frozen=True)
class DatePattern:
    """A pattern as its parts: yyyy, yy, mmmm, mmm, mm, m, dd, d, and single characters that are themselves."""

    parts: tuple[str, ...]
    java: ClassVar[Mapping[str, str]] = _JAVA
    """What Java writes for each part."""
    forms: ClassVar[Mapping[str, str]] = _READ
    """The regular expression of each part."""

    def letters(self) -> list[str]:
        """The parts that are replaced by a piece of the date."""
        return [part for part in self.parts if part in self.java]

    def group(self, letter: str) -> tuple[int, str] | None:
        """The position among the pieces, from 1, and the part that is written with a letter."""
        pieces = enumerate(self.letters(), 1)
        return next(((index, part) for index, part in pieces if part[0] == letter), None)

    def why_not_readable(self) -> str | None:
        """The reason why no date can be read with the pattern; None if one can."""
        written = [part[0] for part in self.letters()]
        if sorted(written) not in (["m", "y"], ["d", "m", "y"]):
            return "a date needs one year, one month and at most one day"
        return self.why_unclear()

    def why_unclear(self) -> str | None:
        """The reason why the pieces of a text could not be told apart; None if they can."""
        for part, after in zip(self.parts, self.parts[1:], strict=False):
            if len(part) == 1 and part in self.java and (after in self.forms or after.isdigit()):
                return f"nothing separates '{part}' from '{after}', so use '{part * 2}'"
        return None

    def regex(self) -> str:
        """The regular expression of a text in this form, for Java and Python, with a group for each piece."""
        return "".join(self.forms.get(part) or f"[{_escaped(part)}]" for part in self.parts)

    def for_java(self) -> str:
        """The pattern for Spark's `date_format`."""
        runs = groupby(self.parts, key=lambda part: part in self.java)
        return "".join("".join(map(self.java.__getitem__, run) if of_date else _quoted(run)) for of_date, run in runs)

    def piece(self, text: Column, letter: str, otherwise: str = "") -> Column:
        """The piece that a text in this form has for a letter."""
        group = self.group(letter)
        return F.regexp_extract(text, rf"\A{self.regex()}\z", group[0]) if group else F.lit(otherwise)

    def iso_date(self, text: Column) -> Column:
        """The date of a text in this form as yyyy-mm-dd, whether or not there is such a day.

        Spark reads patterns more loosely than ours (signs, years of five digits), so the pieces are taken from a
        regular expression, and put into the one form that a cast understands.
        """
        year, month, day = self.piece(text, "y"), self.piece(text, "m"), self.piece(text, "d", "1")
        month_part = (self.group("m") or (0, ""))[1]
        if len(month_part) > 2:
            names = MONTHS if month_part == "mmmm" else SHORT_MONTHS
            numbers = F.create_map(*(F.lit(text) for n, name in enumerate(names, 1) for text in (name.lower(), str(n))))
            month = F.try_element_at(numbers, F.lower(month))
        year = F.concat(F.lit("20"), year) if "yy" in self.parts else year
        return F.concat_ws("-", year, two_digits(month), two_digits(day))

    def read(self, text: str) -> date | None:
        """The date that a text in this form means; None if it is not one."""
        match = re.fullmatch(self.regex(), text)
        if match is None:
            return None
        pieces = {part[0]: (part, match[index]) for index, part in enumerate(self.letters(), 1)}
        part, piece = pieces["m"]
        month = _month_number(piece, SHORT_MONTHS if part == "mmm" else MONTHS) if len(part) > 2 else int(piece)
        year = int(pieces["y"][1]) + (2000 if pieces["y"][0] == "yy" else 0)
        try:
            return date(year, month, int(pieces["d"][1]) if "d" in pieces else 1)
        except ValueError:
            return None

    def write(self, day: date) -> str:
        """The date in this form."""
        pieces = {
            "yyyy": f"{day.year:04d}",
            "yy": f"{day.year % 100:02d}",
            "mmmm": MONTHS[day.month - 1],
            "mmm": SHORT_MONTHS[day.month - 1],
            "mm": f"{day.month:02d}",
            "m": str(day.month),
            "dd": f"{day.day:02d}",
            "d": str(day.day),
        }
        return "".join(pieces.get(part, part) for part in self.parts)


@cache
def date_pattern(text: str) -> DatePattern:
    """Reads a pattern; raises ValueError with the reason if it is not one."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it has more than {MAX_LENGTH} characters")
    parts = tuple(match[0] for match in _TOKENS.finditer(text.lower()))
    unknown = next((part for part in parts if part.isascii() and part.isalpha() and part not in _JAVA), None)
    if unknown is not None:
        raise ValueError(f"'{unknown}' is not a part of a date")
    if not any(part in _JAVA for part in parts):
        raise ValueError("it has no part of a date")
    return DatePattern(parts)


def refused_pattern(text: str, *, reading: bool) -> Refusal | None:
    """The refusal of a text that is no pattern of a date, or none that a date can be read with."""
    try:
        pattern = date_pattern(text)
        reason = pattern.why_not_readable() if reading else None
    except ValueError as error:
        reason = str(error)
    if reason is None:
        return None
    hint = "write yyyy or yy, mm, m, mmm or mmmm, and dd or d, as in dd.mm.yyyy"
    return Refusal(f"the pattern '{text}' cannot be used: {reason}", hint)


def two_digits(number: Column) -> Column:
    """The digits of a number with a leading zero where it has only one."""
    return F.lpad(number, F.lit(2), F.lit("0"))


def _month_number(piece: str, names: tuple[str, ...]) -> int:
    """The number of a month's name in any case; 0 if there is none."""
    named = [number for number, name in enumerate(names, 1) if name.lower() == piece.lower()]
    return named[0] if named else 0


def _quoted(characters: Iterable[str]) -> str:
    return "'" + "".join(characters).replace("'", "''") + "'"


def _escaped(character: str) -> str:
    return f"\\{character}" if character in r"\^]-[&" else character
