"""Ranges of cells in a sheet, such as A3:F200, and the rules for the names of sheets."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""The size of a sheet."""
_RANGE = re.compile(r"([A-Za-z]{1,3})([1-9][0-9]{0,6})?(?::([A-Za-z]{1,3})([1-9][0-9]{0,6})?)?")


@dataclass(frozen=True)
class CellRange:
    """Rows and columns of a sheet, counted from 0; the last ones are None if the range is open."""

    first_row: int = 0
    first_column: int = 0
    last_row: int | None = None
    last_column: int | None = None

    @classmethod
    def parse(cls, text: str) -> CellRange:
        """Reads `A3:F200`, `A3:F` (to the last row), `A:F` (whole columns) or `A3` (from that cell to the end); raises
        ValueError for any other text."""
        match = _RANGE.fullmatch(text.replace("$", ""))
        if match is None:
            raise ValueError(f"'{text}' is not a range of cells")
        first, last = match[1], match[3]
        range = cls(
            int(match[2] or 1) - 1,
            column_index(first),
            int(match[4]) - 1 if match[4] else None,
            column_index(last) if last else None,
        )
        bounds = ((range.first_row, range.last_row, MAX_ROWS), (range.first_column, range.last_column, MAX_COLUMNS))
        for begin, end, size in bounds:
            if (begin if end is None else end) >= size or (end is not None and end < begin):
                raise ValueError(f"'{text}' is not a range of cells")
        return range


def column_index(letters: str) -> int:
    """Returns the number of a column, from 0: 26 for AA."""
    index = 0
    for letter in letters.upper():
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1


def column_letters(index: int) -> str:
    """Returns the letters of a column that is counted from 0: AA for 26."""
    letters = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        letters = chr(ord("A") + letter) + letters
        index -= 1
    return letters


def why_no_sheet(name: str) -> str | None:
    """The reason why a sheet cannot have this name; None if it can."""
    if len(name) > 31:
        return "it has more than 31 characters"
    if not name.strip() or not name.isprintable():
        return "it is blank or has characters that cannot be printed"
    bad = next((letter for letter in name if letter in "[]:*?/\\"), None)
    if bad is not None:
        return f"it has the character '{bad}'"
    if name.startswith("'") or name.endswith("'"):
        return "it begins or ends with an apostrophe"
    return "Excel keeps that name for itself" if name.lower() == "history" else None
