"""Regular expressions of users: reads a pattern, refuses what could take for ever, and writes it for Java and Python.

Both engines try one alternative after the other and go back when the rest does not fit. That takes exponential time
where choices multiply. So each choice of a pattern (a repetition, an optional part, an alternative) is weighed: one
that the next character decides costs nothing, and the others may not multiply beyond the limits below.

Java and Python differ in what `.`, `$` and `\\d` mean. Patterns are therefore written out from the tree, with every
set of characters as ranges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

MAX_LENGTH = 500
MAX_CHOICES = 1_000
"""The product of the choices that the next character does not decide."""
MAX_GAPS = 2
"""Unlimited repetitions that the next character does not end, such as the `.*` of `.*x`."""
MAX_GROUP = 50
"""So often a group may be repeated: Java needs stack for each time."""

Ranges = tuple[tuple[int, int], ...]
"""Code points, as ranges that include both ends."""
_LAST = 0x10FFFF
_ANY: Ranges = ((0, _LAST),)
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACES: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_SETS = {"d": _DIGITS, "w": _WORD, "s": _SPACES}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}
_COUNTS = re.compile(r"\{(\d{1,4})(,?)(\d{0,4})\}")
_SPECIAL = "\\.[](){}*+?^$|"


class PatternError(ValueError):
    """A pattern that is not supported; the text gives the reason."""


class Weight(NamedTuple):
    """The choices that an engine may have to try one after the other."""

    choices: int = 1
    gaps: int = 0

    def __mul__(self, other: object) -> Weight:
        assert isinstance(other, Weight)
        return Weight(self.choices * other.choices, self.gaps + other.gaps)


@dataclass(frozen=True)
class Chars:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Edge:
    """The start or the end of the text."""

    start: bool


@dataclass(frozen=True)
class Row:
    """Parts that follow each other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Choice:
    """Alternatives; a group if `number` is set, 0 for one that is not captured."""

    options: tuple[Row, ...]
    number: int


@dataclass(frozen=True)
class Repeat:
    """A part that is repeated; `most` is None for no limit."""

    part: Chars | Choice
    least: int
    most: int | None
    lazy: bool


Part = Chars | Edge | Row | Choice | Repeat


class Regex(NamedTuple):
    """A pattern that is safe to run."""

    tree: Choice
    groups: int

    def for_java(self, *, whole: bool) -> str:
        """The pattern for Spark. With `whole` it must fit the whole text."""
        written = _written(self.tree, r"\x{%x}", r"\z")
        return rf"\A{written}\z" if whole else written

    def for_python(self) -> re.Pattern[str]:
        """The pattern for `fullmatch` and `search` of Python."""
        python_pattern = _written(self.tree, r"\U%08x", r"\Z")
        return re.compile(python_pattern)


@cache
def read_regex(pattern: str) -> Regex:
    """Returns the pattern as a tree; raises a PatternError if it is not supported."""
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"it has more than {MAX_LENGTH} characters")
    reader = _Reader(pattern)
    tree = reader.choice(0)
    if reader.at < len(pattern):
        raise PatternError("it has a ')' without a '('")
    weight = _weight(tree, ())
    if weight.gaps > MAX_GAPS:
        raise PatternError(
            f"more than {MAX_GAPS} of its unlimited repetitions can match what follows them, which can take for ever"
        )
    if weight.choices > MAX_CHOICES:
        raise PatternError("it can match the same text in too many ways, which can take for ever")
    return Regex(tree, reader.groups)


@dataclass
class _Reader:
    """Reads a pattern from left to right."""

    text: str
    at: int = 0
    groups: int = 0

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        taken = self.text.startswith(text, self.at)
        self.at += len(text) if taken else 0
        return taken

    def choice(self, number: int) -> Choice:
        options = [self._row()]
        while self._take("|"):
            options.append(self._row())
        return Choice(tuple(options), number)

    def _row(self) -> Row:
        parts: list[Part] = []
        while self._next() not in ("", "|", ")"):
            part = self._part()
            parts.append(self._repeated(part))
        return Row(tuple(parts))

    def _part(self) -> Chars | Edge | Choice:
        if self._take("("):
            return self._group()
        if self._take("^"):
            return Edge(start=True)
        if self._take("$"):
            return Edge(start=False)
        if self._take("."):
            return Chars(_ANY)
        if self._take("["):
            return Chars(self._set())
        if self._next() in _SPECIAL and self._next() != "\\":
            raise PatternError(
                f"the '{self._next()}' has nothing to apply to; write \\{self._next()} for the character"
            )
        return Chars(self._character())

    def _group(self) -> Choice:
        number = 0
        if not self._take("?:"):
            if self._next() == "?":
                raise PatternError("'(?' is only supported as '(?:'")
            self.groups += 1
            number = self.groups
        group = self.choice(number)
        if not self._take(")"):
            raise PatternError("it has a '(' without a ')'")
        return group

    def _character(self) -> Ranges:
        """One character, or a set such as \\d."""
        if not self._take("\\"):
            self.at += 1
            return _one(self.text[self.at - 1])
        letter = self._next()
        self.at += 1
        if letter.lower() in _SETS and letter:
            ranges = _SETS[letter.lower()]
            return ranges if letter.islower() else _others(ranges)
        if letter in _CONTROLS:
            return _one(_CONTROLS[letter])
        if not letter or letter.isalnum() or not letter.isascii():
            raise PatternError(f"'\\{letter}' is not supported; use \\d, \\w, \\s or a character class")
        return _one(letter)

    def _set(self) -> Ranges:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            if self._next() in ("", "["):
                raise PatternError("it has a '[' without a ']'; write \\[ for the character")
            first = self._character()
            follows = self.text[self.at + 1 : self.at + 2]
            if self._next() == "-" and follows not in ("", "]") and len(first) == 1 and first[0][0] == first[0][1]:
                self.at += 1
                last = self._character()
                if last[-1][1] < first[0][0] or len(last) > 1 or last[0][0] != last[0][1]:
                    raise PatternError("a range in '[…]' runs from a character to a later one, as in [a-z]")
                first = ((first[0][0], last[0][0]),)
            ranges += first
        if not ranges:
            raise PatternError("'[]' has no characters")
        together = _merged(ranges)
        return _others(together) if negated else together

    def _repeated(self, part: Chars | Edge | Choice) -> Part:
        counts = self._counts()
        if counts is None:
            return part
        least, most = counts
        lazy = self._take("?")
        if self._next() in ("*", "+", "?", "{") and self._next():
            raise PatternError("a repetition cannot be repeated")
        if isinstance(part, Edge):
            raise PatternError("'^' and '$' cannot be repeated")
        if isinstance(part, Choice) and (most is None or most > MAX_GROUP):
            raise PatternError(f"a group can be repeated at most {MAX_GROUP} times; write {{0,{MAX_GROUP}}} after it")
        if isinstance(part, Choice) and _can_be_empty(part):
            raise PatternError("a group that can be empty cannot be repeated")
        return Repeat(part, least, most, lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        if self._next() != "{":
            return None
        written = _COUNTS.match(self.text, self.at)
        if written is None:
            raise PatternError("'{' begins a number of repetitions, as in {2} or {1,3}; write \\{ for the character")
        self.at = written.end()
        least = int(written[1])
        most = int(written[3]) if written[3] else None if written[2] else least
        if most is not None and (most < least or most == 0 or most > MAX_CHOICES):
            raise PatternError(f"'{written[0]}' is not a number of repetitions up to {MAX_CHOICES}")
        return least, most


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _others(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), _LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1)


def _overlap(a: Ranges, b: Ranges) -> bool:
    return any(low <= high_b and low_b <= high for low, high in a for low_b, high_b in b)


def _can_be_empty(part: Part) -> bool:
    match part:
        case Chars():
            return False
        case Edge():
            return True
        case Row(parts):
            return all(map(_can_be_empty, parts))
        case Choice(options):
            return any(map(_can_be_empty, options))
    return part.least == 0 or _can_be_empty(part.part)


def _first(part: Part, after: Ranges) -> Ranges:
    """The characters that can come next where a part begins; `after` are those that can follow it."""
    match part:
        case Chars(ranges):
            return ranges
        case Edge():
            return after
        case Row(parts):
            for inner in reversed(parts):
                after = _first(inner, after)
            return after
        case Choice(options):
            return _merged([pair for option in options for pair in _first(option, after)])
    return _merged([*_first(part.part, after), *(after if part.least == 0 else ())])


def _weight(part: Part, after: Ranges) -> Weight:
    match part:
        case Row(parts):
            weight = Weight()
            for inner in reversed(parts):
                weight *= _weight(inner, after)
                after = _first(inner, after)
            return weight
        case Choice(options):
            weights = [_weight(option, after) for option in options]
            firsts = [_first(option, after) for option in options]
            gaps = max(weight.gaps for weight in weights)
            decided = not any(_overlap(a, b) for a, b in combinations(firsts, 2))
            choices = [weight.choices for weight in weights]
            return Weight(max(choices) if decided else sum(choices), gaps)
        case Repeat(inner, least, most, _):
            again = _first(inner, ())
            body = _weight(inner, _merged([*again, *after]) if most != 1 else after)
            ways = Weight() if least == most or not _overlap(again, after) else _ways(least, most)
            return Weight(body.choices ** (most or 1), body.gaps * (most or 1)) * ways
    return Weight()


def _ways(least: int, most: int | None) -> Weight:
    return Weight(gaps=1) if most is None else Weight(most - least + 1)


def _written(part: Part, character: str, end: str) -> str:
    match part:
        case Chars(ranges):
            return f"[{''.join(f'{character % low}-{character % high}' for low, high in ranges)}]"
        case Edge(start):
            return r"\A" if start else end
        case Row(parts):
            return "".join(_written(inner, character, end) for inner in parts)
        case Choice(options, number):
            return f"({'' if number else '?:'}{'|'.join(_written(option, character, end) for option in options)})"
    counts = f"{{{part.least},{'' if part.most is None else part.most}}}{'?' if part.lazy else ''}"
    return _written(part.part, character, end) + counts
