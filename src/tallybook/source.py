"""The position of a piece of user text: file, line, column. Every message with a position uses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tallybook.text import printable, width


@dataclass(frozen=True, order=True)
class Place:
    """A position in a file, counted from 1, with the text of its line for the caret."""

    file: str
    line: int
    column: int
    text: str = field(default="", compare=False)
    length: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self, most: int = 120) -> str:
        """The source line, printable, with a caret under the spot; empty when the line is not known. Of a longer line,
        the stretch around the spot."""
        if not self.text.strip():
            return ""
        window, shift = _window(self.text.expandtabs(1), self.column - 1, most)
        before, spot = (printable(window[start:end]) for start, end in ((0, shift), (shift, shift + self.length)))
        return f"{printable(window)}\n{' ' * width(before)}{'^' * max(1, width(spot))}"


def _window(line: str, at: int, most: int) -> tuple[str, int]:
    """The stretch of a long line around `at`, with … where it is cut, and where `at` falls in it."""
    if len(line) <= most:
        return line, at
    indent = min(at, len(line) - len(line.lstrip()))
    line, at = line[indent:], at - indent
    start = max(0, min(at - most // 2, len(line) - most))
    stretch = line[start : start + most]
    stretch = f"…{stretch[1:]}" if start and at > start else stretch
    stretch = f"{stretch[:-1]}…" if start + most < len(line) and at < start + most - 1 else stretch
    return stretch, at - start


@dataclass(frozen=True)
class SourceText:
    """A text value of a document, such as an expression, with the position of each of its characters.

    `offsets[i]` is the place of character i in the file as a 0-based (line, column) pair; when a value has no
    exact mapping (an alias, a folded block), `offsets` is empty and every character is reported at `place`.
    """

    text: str
    place: Place | None = None
    offsets: Sequence[tuple[int, int]] = field(default=(), repr=False, compare=False)
    lines: Sequence[str] = field(default=(), repr=False, compare=False)
    label: str = field(default="", compare=False)
    """What the text is, for a message about text nested in other text: `selector 'active'`."""

    def at(self, start: int, end: int | None = None) -> Place | None:
        """The place of the characters from `start` to `end`."""
        length = max(1, (end if end is not None else start + 1) - start)
        if self.place is None:
            return Place("<expression>", *_line_column(self.text, start), _line(self.text, start), length)
        if not self.offsets:
            return self.place
        index = min(start, len(self.offsets) - 1)
        line, column = self.offsets[index]
        shift = start - index
        return Place(self.place.file, line + 1, column + 1 + shift, self.lines[line], length)


def _line_column(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _line(text: str, offset: int) -> str:
    lines = text.split("\n")
    return lines[min(_line_column(text, offset)[0] - 1, len(lines) - 1)]


def path_text(path: Iterable[str | int]) -> str:
    """A path inside a document as users read it: `project.operations[2].arguments.assignments[0].column`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
