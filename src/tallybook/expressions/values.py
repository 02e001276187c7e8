"""Casts, rounds, converts and combines values of the language as plain Python values.

An integer is an `int` of 64 bits, a decimal a `Decimal` with the scale of its type, a date a `date`, a timestamp a
`datetime` in UTC, and NULL is None. What cannot be computed raises ValueError or ArithmeticError with the reason.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from tallybook.model.columns import MAX_PRECISION, ColumnType

EXACT = Context(prec=200, rounding=ROUND_HALF_UP, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
"""Sums, products and remainders of decimals have fewer than 200 digits, so in this context they are exact."""
Value = Callable[[], Any]
"""Computes the value of an argument, only if it is needed."""
_INTEGERS = range(-(2**63), 2**63)
_QUOTIENT_SCALE = MAX_PRECISION + 1
"""Spark first rounds a quotient to this scale, and then to the scale of its type."""
_BLANKS = "".join(map(chr, range(33)))
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,9})?")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def cast(value: Any, type: ColumnType) -> Any:
    """Converts a value to a type: an integer to a decimal, a date to a timestamp at midnight."""
    if value is None:
        return None
    if type.kind == "decimal":
        return rounded(value, type)
    if type.kind == "integer":
        return whole(value)
    return moment_of(value) if type.kind == "timestamp" else value


def rounded(number: int | Decimal, type: ColumnType) -> Decimal:
    """The number at the scale of a decimal type, halves away from zero; too many digits overflow."""
    unit = Decimal(1).scaleb(-type.scale, EXACT)
    digits = EXACT.plus(Decimal(number).quantize(unit, context=EXACT))
    if digits.copy_abs() >= 10**type.integer_digits:
        raise OverflowError(f"{number} has more digits than {type}")
    return digits


def whole(number: int | Decimal) -> int:
    """The number without its fraction, if 64 bits hold it."""
    integer = int(number)
    if integer not in _INTEGERS:
        raise OverflowError(f"{integer} does not fit in a 64-bit integer")
    return integer


def quotient(number: int | Decimal, divisor: int | Decimal) -> Decimal:
    """One number divided by another, with more digits than any decimal type has."""
    exact = EXACT.divide(Decimal(number), Decimal(divisor))
    return exact.quantize(Decimal(1).scaleb(-_QUOTIENT_SCALE, EXACT), context=EXACT)


def to_integer(number: int | Decimal, rounding: str) -> int:
    """The number rounded to an integer of 64 bits."""
    return whole(Decimal(number).to_integral_value(rounding, EXACT))


def integer_from_text(text: str) -> int:
    """An integer written in decimal digits, with spaces and control characters around it ignored."""
    stripped = text.strip(_BLANKS + "\x7f")
    if not _INTEGER_TEXT.fullmatch(stripped):
        raise ValueError(f"'{text}' is not an integer")
    digits = stripped.lstrip("+-").lstrip("0") or "0"
    if len(digits) > MAX_PRECISION:
        raise OverflowError(f"'{text}' does not fit in a 64-bit integer")
    return whole(-int(digits) if stripped.startswith("-") else int(digits))


def decimal_from_text(text: str) -> Decimal:
    """A decimal written with or without an exponent, with spaces around it ignored."""
    stripped = text.strip(_BLANKS)
    if not _DECIMAL_TEXT.fullmatch(stripped) or _ASTRAL.search(stripped):
        raise ValueError(f"'{text}' is not a number")
    number = Decimal(stripped)
    _, digits, exponent = number.as_tuple()
    if number and len(digits) + int(exponent) > MAX_PRECISION:
        raise OverflowError(f"{text} has more than {MAX_PRECISION} digits before the point")
    return number


def text_of(value: object) -> str:
    """Returns a value as text: decimals with all their digits, timestamps without trailing zeros."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        moment = str(value.replace(tzinfo=None))
        return moment.rstrip("0") if value.microsecond else moment
    return str(value)


def day_of(value: date) -> date:
    """The day of a date, or of a timestamp in UTC."""
    return value.date() if isinstance(value, datetime) else value


def moment_of(value: date) -> datetime:
    """The timestamp, or the midnight a date begins with."""
    return value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


def days_later(day: date, days: int) -> date:
    """The date a number of days later."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise OverflowError(f"{day} and {days} days is outside the years 1 to 9999") from None


def months_later(day: date, months: int) -> date:
    """The same day some months later, or the last day of a shorter month."""
    years, before = divmod(day.month - 1 + months, 12)
    if not MINYEAR <= day.year + years <= MAXYEAR:
        raise OverflowError(f"{day} and {months} months is outside the years 1 to 9999")
    first = date(day.year + years, before + 1, 1)
    return first.replace(day=min(day.day, last_day_of_month(first).day))


def last_day_of_month(day: date) -> date:
    """The last day of the month of a date."""
    return day.replace(day=monthrange(day.year, day.month)[1])


def upper(text: str) -> str:
    """Returns the text in upper case, by the Unicode version of Spark."""
    return text.translate(_NEW_CAPITALS).upper()


def lower(text: str) -> str:
    """Returns the text in lower case, by the Unicode version of Spark."""
    return text.translate(_NEW_SMALL).lower()


_PAIRS = {0x019B: 0xA7DC, 0x0264: 0xA7CB, 0x1C8A: 0x1C89}
_PAIRS |= {capital + 1: capital for capital in (0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA)}
_PAIRS |= {0x10D70 + n: 0x10D50 + n for n in range(22)} | {0x16EBB + n: 0x16EA0 + n for n in range(25)}
_NEW_CAPITALS = _PAIRS
"""Small letters that got their capitals after Unicode 14, which is what the oldest supported Python knows."""
_NEW_SMALL = {capital: small for small, capital in _PAIRS.items()}


def all_of(conditions: Iterable[Value]) -> bool | None:
    """True if all are, False if one is false, else None."""
    return _first(conditions, decisive=False)


def any_of(conditions: Iterable[Value]) -> bool | None:
    """True if one is, False if all are false, else None."""
    return _first(conditions, decisive=True)


def _first(conditions: Iterable[Value], *, decisive: bool) -> bool | None:
    all_known = True
    for condition in conditions:
        verdict: bool | None = condition()
        if verdict is decisive:
            return decisive
        all_known = all_known and verdict is not None
    return not decisive if all_known else None
