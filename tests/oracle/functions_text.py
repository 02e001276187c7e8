"""Text, dates and conversions."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, STRING, TIMESTAMP, decimal

from . import values
from .expressions import Context, Meaning, require
from .functions import MOMENTS, NUMBERS, Args, function, simple, strict
from .values import FailedError, RefusedError, as_integer

TEXT, WHOLE, DAY = ["string"], ["integer"], ["date"]
BLANKS = " \t\r\n"
"""What may stand around a number in text."""
DECIMAL_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@function("CONCAT")
def _concat(args: Args, _context: Context) -> Meaning:
    return strict(STRING, lambda *texts: "".join(texts), [require(arg, "string") for arg in args])


@function("SUBSTRING")
def _substring(args: Args, _context: Context) -> Meaning:
    """Positions count from 1; those before the text are there but empty."""

    def cut(text: str, start: int, length: int | None = None) -> str:
        end = len(text) + 1 if length is None else start + length
        return text[max(start, 1) - 1 : max(end, 1) - 1]

    return strict(STRING, cut, [require(args[0], "string"), *(require(arg, "integer") for arg in args[1:])])


simple("UPPER", [TEXT], STRING, str.upper)
simple("LOWER", [TEXT], STRING, str.lower)
simple("TRIM", [TEXT], STRING, lambda text: text.strip(" "))
simple("LEFT", [TEXT, WHOLE], STRING, lambda text, n: text[: max(n, 0)])
simple("RIGHT", [TEXT, WHOLE], STRING, lambda text, n: text[max(len(text) - max(n, 0), 0) :])
simple("LEN", [TEXT], INTEGER, len)
simple("CONTAINS", [TEXT, TEXT], BOOLEAN, lambda text, part: part in text)
simple("STARTS_WITH", [TEXT, TEXT], BOOLEAN, str.startswith)
simple("ENDS_WITH", [TEXT, TEXT], BOOLEAN, str.endswith)
simple("REPLACE", [TEXT] * 3, STRING, lambda text, part, new: text.replace(part, new) if part else text)


def later(day: date, days: int) -> date:
    """The years 1 to 9999 are all there is."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise values.overflow() from None


def make_day(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise values.overflow() from None


def written_day(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise values.overflow()
    return make_day(*map(int, text.split("-")))


def months_later(day: date, months: int) -> date:
    """The same day of the month, or its last where it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise values.overflow()
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def day_of(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


@function("DATE")
def _date(args: Args, _context: Context) -> Meaning:
    if len(args) == 3:
        return strict(DATE, make_day, [require(arg, "integer") for arg in args])
    try:
        day = written_day(str(args[0].literal))
    except FailedError:
        raise RefusedError("TypeMismatch") from None
    return Meaning(DATE, lambda _row: day)


@function("TIMESTAMP")
def _timestamp(args: Args, _context: Context) -> Meaning:
    moment = datetime.fromisoformat(str(args[0].literal))
    known = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Meaning(TIMESTAMP, lambda _row: known)


@function("NOW")
def _now(_args: Args, context: Context) -> Meaning:
    return Meaning(TIMESTAMP, lambda _row: context.now)


@function("TODAY")
def _today(_args: Args, context: Context) -> Meaning:
    return Meaning(DATE, lambda _row: context.now.date())


@function("PERIOD")
def _period(_args: Args, context: Context) -> Meaning:
    return Meaning(STRING, lambda _row: context.period)


simple("YEAR", [MOMENTS], INTEGER, lambda day: day.year)
simple("MONTH", [MOMENTS], INTEGER, lambda day: day.month)
simple("DAY", [MOMENTS], INTEGER, lambda day: day.day)
simple("DATEDIFF", [MOMENTS, MOMENTS], INTEGER, lambda end, start: (day_of(end) - day_of(start)).days)
simple("DATEADD", [DAY, WHOLE], DATE, later)
simple("ADD_MONTHS", [DAY, WHOLE], DATE, months_later)
simple("MONTH_END", [DAY], DATE, lambda day: day.replace(day=calendar.monthrange(day.year, day.month)[1]))


@function("TO_STRING")
def _to_string(args: Args, _context: Context) -> Meaning:
    def text(value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, datetime):
            seconds, _, fraction = value.replace(tzinfo=None).isoformat(" ").partition(".")
            return seconds + ("." + fraction.rstrip("0") if fraction else "")
        return value.isoformat() if isinstance(value, date) else str(value)

    return strict(STRING, text, args)


@function("TO_INTEGER")
def _to_integer(args: Args, _context: Context) -> Meaning:
    def whole(value: Any) -> int:
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+", value.strip(BLANKS)):
            raise values.overflow()
        return as_integer(int(value))

    return strict(INTEGER, whole, [require(args[0], "string", *NUMBERS)])


@function("TO_DECIMAL")
def _to_decimal(args: Args, _context: Context) -> Meaning:
    type = DECIMAL
    if len(args) == 3:
        precision, scale = args[1].literal, args[2].literal
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision <= 38:
            raise RefusedError("TypeMismatch")
        type = decimal(precision, scale)

    def number(value: Any) -> Fraction:
        if isinstance(value, str) and not DECIMAL_TEXT.fullmatch(value.strip(BLANKS)):
            raise values.overflow()
        return Fraction(value.strip(BLANKS) if isinstance(value, str) else value)

    return strict(type, number, [require(args[0], "string", *NUMBERS)])


@function("TO_DATE")
def _to_date(args: Args, _context: Context) -> Meaning:
    return strict(
        DATE, lambda x: written_day(x) if isinstance(x, str) else day_of(x), [require(args[0], "string", *MOMENTS)]
    )
