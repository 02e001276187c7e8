"""Tables to read, and the texts that their values may have in a file."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from ..case import Column

TYPES = [
    "string",
    "integer",
    "boolean",
    "date",
    "timestamp",
    "decimal",
    "decimal(5,2)",
    "decimal(38,10)",
    "decimal(3,0)",
]
PLAIN_NAMES = ["id", "amount", "note", "day", "month", "region"]
ODD_NAMES = [
    "ID", "Order Amount", "a.b", "back`tick", "ümlaut", " spaced ", "_col0", "_col1", "_c0", "${env:HOME}", "x=y", "#1",
    "{a}", "it's",
]  # fmt: skip
LINED_NAMES = ['say "hi"', "two\nlines", "two\r\nlines", "a,b", "a;b"]
"""Names that only a quoted cell of a header can hold."""
EXTRAS = [
    "extra", "ID", "Amount", "x1", "_labels", "_period", "_deleted", "_DELETED", "_operation_seq", "_created_at",
    "_row_id",
]  # fmt: skip
"""Columns that a file may have beyond the declared ones."""
LETTERS = "abcXYZ019 ,;|\t'\"\\/#-_.%é😀\n\r\u2028\x85\ufeff\x00\x1f"
TEXTS = st.text(st.sampled_from(LETTERS), max_size=6) | st.sampled_from(
    ["", " ", "NA", "null", "NULL", "EMEA", "  padded  ", '"', '""', "\r\n", "\\", '\\"', "#", "\ufeff", "a\r", '5" x']
)  # fmt: skip


@cache
def chance(percent: int) -> st.SearchStrategy[bool]:
    """True in so many of a hundred draws; shrinks to False."""
    return st.integers(0, 99).map(lambda number: number >= 100 - percent)


@st.composite
def declared(draw: st.DrawFn, *, names: list[str], types: list[str] = TYPES) -> tuple[Column, ...]:
    """One to four columns with physical names among these."""
    physical = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    columns = [
        Column(f"c{index}", draw(st.sampled_from(types)), name, nullable=not draw(chance(5)))
        for index, name in enumerate(physical)
    ]
    if draw(chance(3)):
        columns.append(Column("again", draw(st.sampled_from(types)), physical[0]))
    return tuple(columns)


def padded(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(["", "", "", " ", "  "]), texts, st.sampled_from(["", "", "", " "])).map("".join)


INTEGERS = st.one_of(
    st.integers(-5, 120).map(str),
    st.sampled_from(["0", "-0", "+7", "007", "12.00", "3.", "9223372036854775807", "-9223372036854775808"]),
)
SMALL_DECIMALS = st.integers(-999, 999).map(str) | st.sampled_from(["0", "-0.0", "+5", "5.", "1e2", "1200e-2", "0e-10"])
DECIMALS = st.decimals(-999, 999, places=2).map(str) | st.sampled_from(
    [".5", "-.50", "1.2E1", "12.5e-1", "0E+5", "100.000000000000", "999.99", "00.10", "1e-2", "25E-2"]
)
DATES = st.dates().map(str) | st.sampled_from(["0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15", "1969-12-31"])
CLOCKS = st.times().map(str) | st.sampled_from(["00:00:00", "23:59:59.999999", "10:00:00.1", "12:30:45.1234560"])
ZONES = st.sampled_from(["", "", "Z", "+00:00", "+02:00", "-0530", "+14", "-00:30"])
TIMESTAMPS = st.tuples(DATES, st.sampled_from("T "), CLOCKS, ZONES).map("".join) | DATES
BOOLEANS = st.sampled_from(["true", "false", "TRUE", "False"])
WRONG = st.sampled_from(
    ["x", "1,000", "1.234", "12.5", "9223372036854775808", "1e3", "NaN", "Infinity", "yes", "2026-02-30", "0000-01-01",
     "2026-1-1", "2026-01-01T10:00", "2026-01-01T00:00:00.1234567", "10000-01-01", "1 2", "--1", "0x1", "\t1", "1\n",
     "1_000", "١", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-01-01T24:00:00", "TRUE\n", "1d",
     "2026-01-01\n", "1.5\n", "2026-01-01T00:00:00\n", "1e99999", "\u00a01", "1\x00", "2026-01-01T00:00:00+19:00"]
)  # fmt: skip


@cache
def texts_of(type: str, *, sound: bool) -> st.SearchStrategy[str]:
    """Texts for values of a type; where the case is not sound, one in ten is no such value."""
    right = {
        "string": TEXTS,
        "integer": padded(INTEGERS),
        "boolean": padded(BOOLEANS),
        "date": padded(DATES),
        "timestamp": padded(TIMESTAMPS),
        "decimal(3,0)": padded(SMALL_DECIMALS),
    }.get(type, padded(SMALL_DECIMALS | DECIMALS))
    return right if sound else chance(10).flatmap(lambda is_wrong: WRONG if is_wrong else right)


def damaged(draw: st.DrawFn, text: str, pieces: list[str]) -> str:
    """The text with a character removed or a piece put in, at one or two positions."""
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text)))
        if draw(st.booleans()):
            text = text[:at] + draw(st.sampled_from(pieces)) + text[at:]
        else:
            text = text[:at] + text[at + 1 :]
    return text
