"""Patterns: regular expressions, and the forms of dates and numbers."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tallybook.model.columns import BOOLEAN, STRING

from . import values
from .expressions import Context, Meaning, require
from .functions import MOMENTS, NUMBERS, Args, function, strict
from .values import RefusedError, half_up

SHORT = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
LONG = ["January", "February", "March", "April", "May", "June", "July"]
LONG += ["August", "September", "October", "November", "December"]
PIECES = re.compile("yyyy|yy|mmmm|mmm|mm|m|dd|d", re.IGNORECASE)


def day_in_form(text: str, pattern: str) -> date:
    """The day that a text means; fails if the text has another form or there is no such day."""
    forms = {"yyyy": "[0-9]{4}", "yy": "[0-9]{2}", "mm": "[0-9]{2}", "m": "[0-9]{1,2}", "dd": "[0-9]{2}"}
    forms |= {"d": "[0-9]{1,2}", "mmm": "[A-Za-z]{3}", "mmmm": "[A-Za-z]{3,9}"}
    regex, end = "", 0
    for piece in PIECES.finditer(pattern):
        regex += re.escape(pattern[end : piece.start()]) + f"(?P<{piece[0][0].lower()}>{forms[piece[0].lower()]})"
        end = piece.end()
    found = re.fullmatch(regex + re.escape(pattern[end:]), text)
    if found is None:
        raise values.overflow()
    parts = found.groupdict()
    try:
        year = int(parts["y"]) + (2000 if len(parts["y"]) == 2 else 0)
        return date(year, _month(parts["m"], "mmmm" in pattern.lower()), int(parts.get("d") or 1))
    except ValueError:
        raise values.overflow() from None


def _month(text: str, long: bool) -> int:
    return int(text) if text.isdigit() else (LONG if long else SHORT).index(text.capitalize()) + 1


def in_form(day: date, pattern: str) -> str:
    written = {"yyyy": f"{day.year:04}", "yy": f"{day.year:04}"[2:], "mmmm": LONG[day.month - 1]}
    written |= {"mmm": SHORT[day.month - 1], "mm": f"{day.month:02}", "m": str(day.month)}
    written |= {"dd": f"{day.day:02}", "d": str(day.day)}
    return PIECES.sub(lambda piece: written[piece[0].lower()], pattern)


def number_in_form(number: Any, pattern: str) -> str:
    percent = pattern.endswith("%")
    whole_form, _, fraction_form = pattern.rstrip("%").partition(".")
    units = half_up(Fraction(number) * (100 if percent else 1), len(fraction_form))
    digits = str(abs(units)).zfill(len(fraction_form) + 1)
    whole, fraction = digits[: len(digits) - len(fraction_form)], digits[len(digits) - len(fraction_form) :]
    while fraction.endswith("0") and len(fraction) > fraction_form.count("0"):
        fraction = fraction[:-1]
    written = f"{int(whole):,}" if "," in whole_form else whole.zfill(len(whole_form))
    return ("-" if units < 0 else "") + written + ("." + fraction if fraction else "") + ("%" if percent else "")


@function("TEXT")
def _text(args: Args, _context: Context) -> Meaning:
    value, pattern = require(args[0], *NUMBERS, *MOMENTS), args[1].literal
    if not isinstance(pattern, str):
        raise RefusedError("TypeMismatch")

    def text(found: Any) -> str:
        return number_in_form(found, pattern) if isinstance(found, int | Decimal) else in_form(found, pattern)

    return strict(STRING, text, [value])


def _regex(pattern: object) -> re.Pattern[str]:
    if not isinstance(pattern, str):
        raise RefusedError("TypeMismatch")
    return re.compile(pattern.replace("$", r"\Z"), re.ASCII | re.DOTALL)


@function("MATCHES")
def _matches(args: Args, _context: Context) -> Meaning:
    regex = _regex(args[1].literal)
    return strict(BOOLEAN, lambda text: regex.fullmatch(text) is not None, [require(args[0], "string")])


@function("REGEX_EXTRACT")
def _extract(args: Args, _context: Context) -> Meaning:
    regex = _regex(args[1].literal)
    group = args[2].literal if len(args) > 2 else min(regex.groups, 1)
    if not isinstance(group, int) or not 0 <= group <= regex.groups:
        raise RefusedError("TypeMismatch")

    def part(text: str) -> str | None:
        found = regex.search(text)
        return None if found is None else found.group(group) or ""

    return strict(STRING, part, [require(args[0], "string")])
