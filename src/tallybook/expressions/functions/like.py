"""LIKE in bounded time.

Spark turns a pattern into a regular expression with `.*` for each `%`, which takes as many nested loops over the text
as there are `%`. Here each part between two `%` is an atomic group that ends at the first place where it fits. A later
place could never help what follows, so nothing is lost, and the text is passed over once for every part at most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tallybook.expressions.functions.raising import refusing
from tallybook.expressions.functions.spark import F

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_GAPS = 1_000
"""So many `%` a pattern may have: Java's regular expressions need stack for each, and without stack the JVM ends."""

_PATTERN = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)
_TOKENS = re.compile(r"\\(?P<escaped>.)|(?P<text>[^\\%_]+)|(?P<one>_)|%+", re.DOTALL)
_BEGIN, _GAP, _END = r"(?s)\A(?>", r")(?>.*?", r"\z)"

Segment = tuple[str | None, ...]
"""What is between two `%`: texts, and None for each `_`."""


def is_pattern(pattern: str) -> bool:
    """True if every backslash is followed by what it makes literal."""
    return _PATTERN.fullmatch(pattern) is not None


def gaps(pattern: str) -> int:
    """The number of `%` that are wildcards; several in a row count as one."""
    return len(_segments(pattern)) - 1


def fits(text: Column, pattern: str) -> Column:
    """True where the text fits a pattern that is known: Spark's own functions where they can say it."""
    segments = _segments(pattern)
    match [_as_text(segment) for segment in segments]:
        case [str(whole)]:
            return text == F.lit(whole)
        case [str(start), ""]:
            return F.startswith(text, F.lit(start))
        case ["", str(end)]:
            return F.endswith(text, F.lit(end))
        case ["", str(part), ""]:
            return F.contains(text, F.lit(part))
    return F.rlike(text, F.lit(_BEGIN + _GAP.join(map(_as_regex, segments)) + _END))


def fits_text(text: str, pattern: str) -> bool:
    """True if a plain text fits a plain pattern; ValueError if that is no pattern, or has too many `%`."""
    if not is_pattern(pattern):
        raise ValueError(f"'{pattern}' has a backslash that is not followed by %, _ or another backslash")
    if gaps(pattern) > MAX_GAPS:
        raise ValueError(f"the pattern has more than {MAX_GAPS:,} %")
    first, *rest = _segments(pattern)
    end = _end(first, text, 0)
    if not rest:
        return end == len(text)
    *middle, last = rest
    for segment in middle:
        if end is None:
            return False
        ends = (_end(segment, text, start) for start in range(end, len(text) + 1))
        end = next((at for at in ends if at is not None), None)
    start = len(text) - sum(1 if part is None else len(part) for part in last)
    return end is not None and start >= end and _end(last, text, start) is not None


def _end(segment: Segment, text: str, start: int) -> int | None:
    """Where a segment ends that begins at `start`; None if it does not fit there."""
    at = start
    for part in segment:
        if at >= len(text) if part is None else not text.startswith(part, at):
            return None
        at += 1 if part is None else len(part)
    return at


def fits_column(text: Column, pattern: Column) -> Column:
    """The same for a pattern that differs from row to row: its regular expression is written by regular expressions.

    Texts and escaped characters are quoted first, so a `%` or `_` is a wildcard unless `\\Q` comes before it.
    """
    quoted = F.regexp_replace(pattern, F.lit(r"(?s)\\(.)|([^%_\\]+)"), F.lit(r"\\Q$1$2\\E"))
    spread = F.regexp_replace(quoted, F.lit(r"(?<!\\Q)%+"), F.lit(_GAP))
    regex = F.concat(F.lit(_BEGIN), F.regexp_replace(spread, F.lit(r"(?<!\\Q)_"), F.lit(".")), F.lit(_END))
    misplaced = F.contains(F.regexp_replace(pattern, F.lit(r"\\[%_\\]"), F.lit("")), F.lit("\\"))
    stray = "is not a pattern: a backslash must be followed by %, _ or another backslash"
    return F.rlike(
        text,
        F.when(misplaced, refusing("LIKE", pattern, stray))
        .when(
            F.regexp_count(pattern, F.lit("%+")) > MAX_GAPS,
            refusing("LIKE", pattern, f"is a pattern with more than {MAX_GAPS:,} %"),
        )
        .otherwise(regex),
    )


def _segments(pattern: str) -> list[Segment]:
    segments: list[list[str | None]] = [[]]
    for token in _TOKENS.finditer(pattern):
        if token["one"]:
            segments[-1].append(None)
        elif token["escaped"] or token["text"]:
            segments[-1].append(token["escaped"] or token["text"])
        else:
            segments.append([])
    return [tuple(segment) for segment in segments]


def _as_text(segment: Segment) -> str | None:
    """The text a segment is, or None if it has a `_`."""
    return None if None in segment else "".join(filter(None, segment))


def _as_regex(segment: Sequence[str | None]) -> str:
    return "".join("." if text is None else "".join(map(_literal, text)) for text in segment)


def _literal(letter: str) -> str:
    return letter if letter.isascii() and letter.isalnum() else rf"\x{{{ord(letter):x}}}"
