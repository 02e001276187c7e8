"""Converts a cell from YAML to a value of its column's type."""

from __future__ import annotations

import re
from datetime import date, time, timedelta
from decimal import Decimal

from tallybook.model.base import as_text
from tallybook.model.columns import VALIDITY_COLUMNS, ColumnType
from tallybook.scenarios.model import parse_timestamp

_LARGEST_INTEGER = 2**63 - 1
_QUOTED_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
"""A decimal may be written as text, as `--json` prints those with many digits."""


def read_value(value: object, type: ColumnType, *, exact: bool = True) -> object:
    """Returns the value of a cell in YAML; raises ValueError with the reason if it is not valid.

    `exact` refuses a value that the column cannot hold. An expectation can be any number, because it is only compared.
    """
    if value is None:
        return None
    match type.kind:
        case "string":
            return as_text(value)
        case "boolean":
            return _boolean(value)
        case "integer":
            return _integer(value)
        case "decimal":
            return _decimal(value, type, exact)
        case "date":
            return _date(value)
    return parse_timestamp(str(as_text(value)))


def read_given(name: str, value: object, type: ColumnType) -> object:
    """Returns the value of a cell of a given row. A validity bound can be a timestamp, which is read as in data: as the
    first day that does not begin before it, in UTC."""
    if value is None or name not in VALIDITY_COLUMNS:
        return read_value(value, type)
    try:
        return _date(value)
    except ValueError:
        bound = parse_timestamp(str(as_text(value)))
    begins_day = bound.time() == time() or bound.date() == date.max
    return bound.date() if begins_day else bound.date() + timedelta(days=1)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is not true or false")
    return value


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"{_shown(value)} is not a number{_quotes(value)}")
    return Decimal(value)


def _integer(value: object) -> int:
    number = _number(value)
    if number != number.to_integral_value() or not -_LARGEST_INTEGER - 1 <= number <= _LARGEST_INTEGER:
        raise ValueError(f"{_shown(value)} is not a 64-bit integer")
    return int(number)


def _decimal(value: object, type: ColumnType, exact: bool) -> Decimal:
    number = Decimal(value) if isinstance(value, str) and _QUOTED_DECIMAL.fullmatch(value) else _number(value)
    parts = number.as_tuple()
    assert isinstance(parts.exponent, int), "YAML has no NaN here"
    digits = "".join(map(str, parts.digits)).rstrip("0") if number else ""
    scale = -(parts.exponent + len(parts.digits) - len(digits))
    if exact and (scale > type.scale or len(digits) - scale > type.integer_digits):
        raise ValueError(f"{_shown(value)} does not fit {type}")
    return number


def _date(value: object) -> date:
    text = str(as_text(value))
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise ValueError(f"{_shown(value)} is not a date such as 2026-01-31")
    return day


def _shown(value: object) -> str:
    return f"'{as_text(value)}'"


def _quotes(value: object) -> str:
    """Returns a hint for text that would be a number without quotes, which is the usual mistake."""
    try:
        Decimal(str(value))
    except ArithmeticError:
        return ""
    return " but text; remove the quotes"


def same(expected: object, actual: object) -> bool:
    """True if two values are equal: numbers by value, and NULL equals NULL."""
    return expected == actual and (expected is None) == (actual is None)
