"""Text, dates and conversions."""

from __future__ import annotations

import calendar
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, STRING, TIMESTAMP, decimal

from . import values
from .expressions import Context, Meaning, require
from .functions import FUNCTIONS, MOMENTS, NUMBERS, Args, function, simple, strict
from .functions_patterns import day_in_form
from .periods import days, shifted
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


def _neighbour(args: Args, context: Context) -> str:
    """The identifier of the period that an offset means; the offset is a literal."""
    if len(args) > 1 or (args and not (args[0].type == INTEGER and isinstance(args[0].literal, int))):
        raise RefusedError("TypeMismatch")
    return shifted(context.period, args[0].literal) if args else context.period


@function("PERIOD")
def _period(args: Args, context: Context) -> Meaning:
    name = _neighbour(args, context)
    return Meaning(STRING, lambda _row: name)


@function("PERIOD_START")
def _period_start(args: Args, context: Context) -> Meaning:
    first, _last = days(_neighbour(args, context))
    return Meaning(DATE, lambda _row: first)


@function("PERIOD_END")
def _period_end(args: Args, context: Context) -> Meaning:
    _first, last = days(_neighbour(args, context))
    return Meaning(DATE, lambda _row: last)


simple("LPAD", [TEXT, WHOLE, TEXT], STRING, lambda text, n, fill: _filled(n, text, fill)[0] + _cut(n, text))
simple("RPAD", [TEXT, WHOLE, TEXT], STRING, lambda text, n, fill: _cut(n, text) + _filled(n, text, fill)[0])
simple("FIND", [TEXT, TEXT], INTEGER, lambda needle, text: text.index(needle) + 1 if needle in text else 0)


def _cut(length: int, text: str) -> str:
    return "".join(text[i] for i in range(min(len(text), length)))


def _filled(length: int, text: str, fill: str) -> tuple[str]:
    """What is missing to the length, as far as there is something to fill it with."""
    if length > 100_000:
        raise values.overflow()
    return ("".join(fill[i % len(fill)] for i in range(length - len(text))) if fill else "",)


@function("SPLIT_PART")
def _split_part(args: Args, _context: Context) -> Meaning:
    text, separator, number = require(args[0], "string"), require(args[1], "string"), require(args[2], "integer")

    def part(whole: str, between: str, n: int) -> str | None:
        parts, rest = [], whole
        while between and between in rest:
            before, _, rest = rest.partition(between)
            parts.append(before)
        return dict(enumerate([*parts, rest], 1)).get(n)

    return strict(STRING, part, [text, separator, number])


def _proper(text: str) -> str:
    words, after_letter = [], False
    for character in text:
        letter = unicodedata.category(character).startswith(("L", "M"))
        if letter and after_letter:
            words[-1] += character
        else:
            words.append(character)
        after_letter = letter
    return "".join(word[0].upper() + word[1:].lower() for word in words)


simple("PROPER", [TEXT], STRING, _proper)
simple("QUARTER", [MOMENTS], INTEGER, lambda day: 1 + (day.month - 1) // 3)
simple("WEEKDAY", [MOMENTS], INTEGER, lambda day: day.weekday() + 1)
simple("WEEK", [MOMENTS], INTEGER, lambda day: int(day.strftime("%V")))
simple("YEAR", [MOMENTS], INTEGER, lambda day: day.year)
simple("MONTH", [MOMENTS], INTEGER, lambda day: day.month)
simple("DAY", [MOMENTS], INTEGER, lambda day: day.day)
simple("DATEDIFF", [MOMENTS, MOMENTS], INTEGER, lambda end, start: (day_of(end) - day_of(start)).days)
simple("DATEADD", [DAY, WHOLE], DATE, later)
simple("ADD_MONTHS", [DAY, WHOLE], DATE, months_later)
for _name in ("MONTH_END", "EOMONTH"):
    simple(_name, [DAY], DATE, lambda day: day.replace(day=calendar.monthrange(day.year, day.month)[1]))


def _months_between(end: date, start: date) -> int:
    """The most months that can be added to the earlier date without passing the later."""
    first, last = sorted((day_of(start), day_of(end)))
    months = max(0, (last.year - first.year) * 12 + last.month - first.month - 2)
    while True:
        try:
            if months_later(first, months + 1) > last:
                break
        except FailedError:
            break
        months += 1
    return -months if day_of(end) < day_of(start) else months


simple("MONTHS_BETWEEN", [MOMENTS, MOMENTS], INTEGER, _months_between)


@function("YEARFRAC")
def _year_fraction(args: Args, _context: Context) -> Meaning:
    basis = str(args[2].literal)
    if basis not in ("30/360", "act/360", "act/365", "act/act"):
        raise RefusedError("TypeMismatch")

    def forward(first: date, last: date) -> Fraction:
        if basis == "act/act":
            return _in_years(last) - _in_years(first)
        if basis != "30/360":
            return Fraction((last - first).days, int(basis[4:]))
        d1 = 30 if first.day == 31 else first.day
        d2 = 30 if last.day == 31 and d1 == 30 else last.day
        return Fraction(360 * (last.year - first.year) + 30 * (last.month - first.month) + d2 - d1, 360)

    def years(start: date, end: date) -> Fraction:
        a, b = day_of(start), day_of(end)
        return forward(a, b) if a <= b else -forward(b, a)

    return strict(decimal(18, 12), years, [require(arg, *MOMENTS) for arg in args[:2]])


def _in_years(day: date) -> Fraction:
    """The years since the year 0: whole ones, and the part of this one by its own length."""
    return day.year + Fraction(day.timetuple().tm_yday - 1, 366 if calendar.isleap(day.year) else 365)


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


def _tried(name: str) -> None:
    """TRY_NAME is NULL where NAME fails, but not where its argument does."""

    def define(args: Args, context: Context) -> Meaning:
        plain = FUNCTIONS[name](args, context)

        def of(row: Any) -> object:
            values_of(args, row)
            try:
                return plain.of(row)
            except FailedError:
                return None

        return Meaning(plain.type, of)

    FUNCTIONS[f"TRY_{name}"] = define


def values_of(args: Args, row: Any) -> None:
    for arg in args:
        arg.of(row)


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
    value = require(args[0], "string", *MOMENTS)
    if len(args) > 1:
        if value.type.kind in MOMENTS or not isinstance(args[1].literal, str):
            raise RefusedError("TypeMismatch")
        pattern = args[1].literal
        return strict(DATE, lambda text: day_in_form(text, pattern), [value])
    return strict(DATE, lambda x: written_day(x) if isinstance(x, str) else day_of(x), [value])


for _name in ("TO_INTEGER", "TO_DECIMAL", "TO_DATE"):
    _tried(_name)
