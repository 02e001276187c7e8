"""Patterns of timestamps, such as dd.mm.yyyy hh:mm:ss, for the values of text files.

They are patterns of dates with a time: hh or h, mm, ss, and zeros for fractions of a second (ss.000). As in
spreadsheets, mm means minutes after hours or before seconds. With AM/PM the hours are those of a clock with twelve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from tallybook.expressions.functions.date_patterns import MAX_LENGTH, DatePattern, two_digits
from tallybook.expressions.functions.spark import F

if TYPE_CHECKING:
    from pyspark.sql import Column

_TOKENS = re.compile(r"am/pm|(?<=s[.,])(?:0+|s{3,})|([a-z])\1*|[^a-z]", re.DOTALL)
_MOST_FRACTIONS = 6
_FRACTIONS = {"f" * digits: digits for digits in range(1, _MOST_FRACTIONS + 1)}
_JAVA = {"hh": "HH", "h": "H", "kk": "hh", "k": "h", "nn": "mm", "n": "m", "ss": "ss", "s": "s", "am/pm": "a"}
_JAVA |= {part: "S" * digits for part, digits in _FRACTIONS.items()}
_READ = {"kk": "(0[1-9]|1[0-2])", "k": "(0?[1-9]|1[0-2])", "am/pm": "([AaPp][Mm])"}
_READ |= dict.fromkeys(("hh", "nn", "ss"), "([0-9]{2})") | dict.fromkeys(("h", "n", "s"), "([0-9]{1,2})")
_READ |= {part: f"([0-9]{{{digits}}})" for part, digits in _FRACTIONS.items()}


@dataclass(frozen=True)
class TimestampPattern(DatePattern):
    """A pattern whose parts are those of a date, and hh, h (hours), kk, k (hours of a clock with twelve), nn, n
    (minutes), ss, s, f to ffffff (fractions of a second) and am/pm."""

    java: ClassVar[Mapping[str, str]] = {**DatePattern.java, **_JAVA}
    forms: ClassVar[Mapping[str, str]] = {**DatePattern.forms, **_READ}

    def why_not_readable(self) -> str | None:
        written = sorted("h" if part[0] == "k" else part[0] for part in self.letters() if part != "am/pm")
        if "".join(written) not in ("dhmny", "dhmnsy", "dfhmnsy"):
            return "a timestamp needs one year, month, day, hour and minute, and at most one second"
        reason = self.why_unclear()
        return reason and reason.replace("n'", "m'").replace("'n", "'m").replace("'k", "'h").replace("k'", "h'")

    def iso_timestamp(self, text: Column) -> Column:
        """The timestamp of a text in this form as yyyy-mm-ddThh:mm:ss.ffffff, whether or not there is such a time."""
        hour, fraction = self.piece(text, "h"), self.piece(text, "f")
        if self.group("a"):
            half = F.when(F.lower(self.piece(text, "a")) == "pm", F.lit(12)).otherwise(F.lit(0))
            hour = (self.piece(text, "k").try_cast("int") % 12 + half).cast("string")
        time = F.concat_ws(":", *map(two_digits, (hour, self.piece(text, "n"), self.piece(text, "s", "0"))))
        fraction = F.rpad(fraction, F.lit(_MOST_FRACTIONS), F.lit("0"))
        return F.concat(self.iso_date(text), F.lit("T"), time, F.lit("."), fraction)


@cache
def timestamp_pattern(text: str) -> TimestampPattern:
    """Reads a pattern; raises ValueError with the reason if no timestamp can be read with it."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it has more than {MAX_LENGTH} characters")
    tokens = [match[0] for match in _TOKENS.finditer(text.lower())]
    unknown = next((token for token in tokens if re.fullmatch("[a-z]+", token) and token not in _WRITTEN), None)
    if unknown is not None:
        raise ValueError(f"'{unknown}' is not a part of a timestamp")
    pattern = TimestampPattern(tuple(_parts(tokens)))
    reason = pattern.why_not_readable()
    if reason is not None:
        raise ValueError(reason)
    return pattern


_WRITTEN = {*DatePattern.java, "hh", "h", "ss", "s", "t", *("s" * digits for digits in range(3, _MOST_FRACTIONS + 1))}
"""What can be written in a pattern, besides zeros and AM/PM. A T between date and time is itself."""


def _parts(tokens: list[str]) -> Iterator[str]:
    """Gives minutes, fractions and the hours of a clock with twelve the letters that they have in a pattern."""
    letters = [token[0] for token in tokens if token[0] in "dmyhs"]
    hours = "k" if "am/pm" in tokens else "h"
    position = -1
    for index, token in enumerate(tokens):
        position += token[0] in "dmyhs"
        after_seconds = index > 1 and tokens[index - 2] in ("s", "ss")
        if after_seconds and (token[0] == "0" or token.startswith("sss")):
            yield "f" * min(len(token), _MOST_FRACTIONS)
        elif token in ("m", "mm") and (letters[:position][-1:] == ["h"] or letters[position + 1 :][:1] == ["s"]):
            yield token.replace("m", "n")
        else:
            yield "T" if token == "t" else token.replace("h", hours)
