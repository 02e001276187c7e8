"""Lays out what people read: tables that fit the terminal, broken lines, numbers and durations.

Nothing here prints. A room of None means that nobody minds the width: the output is a file or a pipe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tallybook.text import Line, Marked, printable, width

_GAP = 2
_LEAST_CELL = 16
"""A cell of a data table is never cut below this width."""
_PLAIN_DIGITS = 4
"""Whole numbers of up to four digits have no separator: many of them are years and account numbers."""

Cell = str | Marked


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    right: bool = False
    """True for numbers."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[Line]:
    """Returns the lines of a table, each column as wide as its longest cell."""
    titles: list[Cell] = [column.title for column in columns]
    widths = table_widths(columns, rows)
    rule = Marked((" " * _GAP).join("─" * most for most in widths).rstrip(), "faint")
    return [_row(titles, columns, widths), (rule,), *(_row(cells, columns, widths) for cells in rows)]


def table_widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Returns the width of each column."""
    return [
        max(_width(cell) for cell in (column.title, *(cells[index] for cells in rows)))
        for index, column in enumerate(columns)
    ]


def table_width(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    """Returns the width of the table."""
    return sum(table_widths(columns, rows)) + _GAP * (len(columns) - 1)


def data_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> list[Line]:
    """Returns the lines of a table of data. If it is wider than the room, long cells are cut and the last columns left
    out; the last line names them."""
    if room is None or not is_cut(columns, rows, room):
        return table(columns, rows)
    most = max(_LEAST_CELL, room // 2)
    cut = [[cut_to(printable(cell), most) for cell in cells] for cells in rows]
    kept = len(columns)
    while kept > 1 and table_width(columns[:kept], [cells[:kept] for cells in cut]) > room:
        kept -= 1
    lines = table(columns[:kept], [cells[:kept] for cells in cut])
    left_out = [column.title for column in columns[kept:]]
    if left_out:
        plural = "" if len(left_out) == 1 else "s"
        lines.append((Marked(f"… {len(left_out)} more column{plural}: {', '.join(left_out)}", "faint"),))
    return lines


def is_cut(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> bool:
    """True if `data_table` shows only a part of the table."""
    return room is not None and table_width(columns, rows) > room


def _row(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int]) -> Line:
    parts: list[Cell] = []
    for index, (cell, column, most) in enumerate(zip(cells, columns, widths, strict=True)):
        spaces = " " * (most - _width(cell))
        is_last = index == len(columns) - 1
        parts += [spaces, cell] if column.right else [cell, "" if is_last else spaces]
        parts.append("" if is_last else " " * _GAP)
    while parts and isinstance(parts[-1], str) and not parts[-1].strip():
        parts.pop()
    return tuple(parts)


def _width(cell: Cell) -> int:
    return width(printable(cell if isinstance(cell, str) else cell.text))


def cut_to(text: str, most: int) -> str:
    """Returns a printable text cut to a width; `…` replaces what is left out."""
    if width(text) <= most:
        return text
    kept = ""
    for char in text:
        if width(kept + char) >= most:
            break
        kept += char
    return f"{kept}…"


def is_number(value: object) -> bool:
    """True for values that people read as numbers."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def number_text(value: Any) -> str:
    """Returns a number with all its digits and thousands separators, such as 1,250.00."""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_PLAIN_DIGITS else f"{value:,}"
    return f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}"


def duration(seconds: float) -> str:
    """Returns a time span as people read it: 2.3 s, 1 min 12 s, 2 h 5 min."""
    if seconds < 59.95:  # what would be shown as 60.0 s
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def broken(line: Line, room: int, hang: int | None = None) -> list[Line]:
    """Returns a line as several that fit the room, broken between words.

    All but the first begin with `hang` spaces, by default two more than the first. A long word stays whole, so that
    paths can be copied: it begins further left if it fits there.
    """
    whole = "".join(printable(part if isinstance(part, str) else part.text) for part in line)
    if width(whole) <= room:
        return [line]
    indent = " " * (len(whole) - len(whole.lstrip()) + 2 if hang is None else hang)
    lines: list[list[Cell]] = [[]]
    used = 0
    for word in _words(line):
        size = sum(map(_width, word))
        if used > len(indent) and used + size > room:
            word[0] = _stripped(word[0])
            size = sum(map(_width, word))
            used = min(len(indent), max(0, room - size))
            lines.append([indent[:used]])
        lines[-1] += word
        used += size
    return [tuple(parts) for parts in lines]


def _words(line: Line) -> Iterator[list[Cell]]:
    """The words of a line, each with the spaces before it; a word may consist of several parts."""
    word: list[Cell] = []
    for part in line:
        text = part if isinstance(part, str) else part.text
        for piece in re.findall(r"\s*\S+|\s+", text):
            if word and piece[0].isspace() and any(_is_seen(one) for one in word):
                yield word
                word = []
            word.append(piece if isinstance(part, str) else Marked(piece, part.role))
    if word:
        yield word


def _stripped(cell: Cell) -> Cell:
    return cell.lstrip() if isinstance(cell, str) else Marked(cell.text.lstrip(), cell.role)


def _is_seen(cell: Cell) -> bool:
    return not (cell if isinstance(cell, str) else cell.text).isspace()
