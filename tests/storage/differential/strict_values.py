"""Texts and Arrow values as values of a declared type: exactly, or MalformedError. Written from the documentation."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

from .verdict import MalformedError

INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6})0*)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
DECIMAL_TYPE = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
FURTHEST_ZONE = timedelta(hours=18)
REPLACEMENT = "\ufffd"
INTEGER_DIGITS = {
    **{"int8": 3, "int16": 5, "int32": 10, "int64": 19},
    **{"uint8": 5, "uint16": 10, "uint32": 19, "uint64": 20},  # as digits of the signed type that has room for all
}


def value_of(text: str, type: str) -> Any:
    """The value that a text means in a column of this type."""
    if type == "string":
        if REPLACEMENT in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise MalformedError("DataLoadError", "text that is not UTF-8", repr(text))
        return text
    bare = text.strip(" ")
    try:
        return _parse(bare, type)
    except ValueError as error:
        raise MalformedError("DataLoadError", "text that is no value of its type", f"{text!r}: {error}") from None


def _parse(text: str, type: str) -> Any:
    if type == "integer":
        _match(INTEGER, text)
        return _in_64_bits(int(text.partition(".")[0]))
    if type == "boolean":
        return {"true": True, "false": False}[_match(re.compile("(?i:true|false)"), text)[0].lower()]
    if type == "date":
        return date.fromisoformat(_match(DATE, text)[0])
    if type == "timestamp":
        return _moment(text)
    _match(DECIMAL, text)
    return _fitting(Decimal(text), type)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError("not in its form")
    return match


def _in_64_bits(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ValueError("more than 64 bits")
    return number


def _fitting(number: Decimal, type: str) -> Decimal:
    precision, scale = digits_of(type)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    needed = len(significant) - len(significant.rstrip("0")) + exponent
    if not significant:
        return Decimal(0).scaleb(-scale)
    if needed < -scale or len(significant) + exponent > precision - scale:
        raise ValueError("digits would be lost")
    return number


def digits_of(type: str) -> tuple[int, int]:
    """Precision and scale of a decimal type."""
    match = DECIMAL_TYPE.fullmatch(type)
    return (int(match[1]), int(match[2])) if match else (18, 6)


def _moment(text: str) -> datetime:
    if DATE.fullmatch(text):
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    day, clock, fraction, zone = _match(TIMESTAMP, text).groups()
    moment = datetime.fromisoformat(f"{day}T{clock}").replace(microsecond=int((fraction or "").ljust(6, "0")))
    offset = _offset(zone)
    try:
        return (moment - offset).replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("outside of the years 1 to 9999") from None


def _offset(zone: str | None) -> timedelta:
    if zone in (None, "Z"):
        return timedelta()
    assert zone is not None
    hours, minutes = int(zone[1:3]), int(zone[-2:] if len(zone) > 3 else 0)
    offset = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or offset > FURTHEST_ZONE:
        raise ValueError("no such zone")
    return -offset if zone[0] == "-" else offset


def widened(array: pa.ChunkedArray, type: str, format: str) -> list[Any]:
    """The values of an Arrow column in the declared type."""
    stored = array.type.value_type if kinds.is_dictionary(array.type) else array.type
    if not _widens(stored, type):
        raise MalformedError("SchemaMismatch", "a type that does not widen", f"{stored} to {type}")
    if not kinds.is_timestamp(stored):
        return [_exact(value, type) for value in array.to_pylist()]
    moments = array.cast(pa.int64()).to_pylist()  # Python's have no nanoseconds
    return [None if moment is None else _micros(moment, IN_A_SECOND[stored.unit], format) for moment in moments]


def _widens(stored: pa.DataType, type: str) -> bool:
    if kinds.is_null(stored):
        return True
    if type == "string":
        return bool(kinds.is_string(stored) or kinds.is_large_string(stored) or stored == pa.string_view())
    if type == "boolean":
        return bool(kinds.is_boolean(stored))
    if type == "date":
        return bool(kinds.is_date(stored))
    if type == "timestamp":
        return bool(kinds.is_date(stored) or kinds.is_timestamp(stored))
    if type == "integer":
        whole = kinds.is_decimal(stored) and stored.scale == 0 and stored.precision <= 18
        return INTEGER_DIGITS.get(str(stored), 99) < 20 or bool(whole)
    precision, scale = digits_of(type)
    if kinds.is_decimal(stored):
        return bool(0 <= stored.scale <= scale and stored.precision - stored.scale <= precision - scale)
    return INTEGER_DIGITS.get(str(stored), 99) <= precision - scale


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _micros(moment: int, in_a_second: int, format: str) -> datetime:
    """A moment that is counted from 1970 in parts of a second."""
    micros, lost = divmod(moment * 10**6, in_a_second)
    if format == "orc" and moment < 0 and moment % in_a_second:
        raise MalformedError("DataLoadError", "a fraction of a second before 1970 in ORC")
    if lost:
        raise MalformedError("DataLoadError", "nanoseconds that would be lost")
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise MalformedError("DataLoadError", "outside of the years 1 to 9999") from None


def _exact(value: Any, type: str) -> Any:
    if isinstance(value, date) and type == "timestamp":
        return datetime.combine(value, time(), UTC)
    if value is None or type in ("string", "boolean", "date"):
        return value
    return int(value) if type == "integer" else Decimal(value)
