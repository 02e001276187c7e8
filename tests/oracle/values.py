"""What a value is, how many digits a number may have, and how a value goes into a column.

Everything is exact: integers and `Decimal`s are turned into fractions, computed, and rounded once, half away from zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tallybook.model.columns import ColumnType, decimal

_WIDE = Context(prec=200)


class RefusedError(Exception):
    """The project is wrong: found without data. The first argument is the problem type."""


class FailedError(Exception):
    """The run fails on some row. The first argument is the problem type."""


def overflow() -> FailedError:
    return FailedError("EvaluationError")


# --- digits ---------------------------------------------------------------------------------------------------------


def with_room(whole: int, scale: int) -> ColumnType:
    """The decimal with so many digits on both sides; beyond 38 the fraction gives way, but never below six digits."""
    if whole + scale > 38:
        scale = max(38 - whole, min(scale, 6))
        whole = 38 - scale
    return decimal(max(1, whole + scale), scale)


def added(a: ColumnType, b: ColumnType) -> ColumnType:
    return with_room(max(_whole(a), _whole(b)) + 1, max(a.scale, b.scale))


def multiplied(a: ColumnType, b: ColumnType) -> ColumnType:
    return with_room(_whole(a) + _whole(b) + 1, a.scale + b.scale)


def divided(a: ColumnType, b: ColumnType) -> ColumnType:
    """A quotient of a number with w whole digits by one with s fractional digits is below 10^(w+s)."""
    return with_room(_whole(a) + b.scale, 38)


def remainder(a: ColumnType, b: ColumnType) -> ColumnType:
    return with_room(min(_whole(a), _whole(b)), max(a.scale, b.scale))


def summed(a: ColumnType) -> ColumnType:
    """Ten more whole digits, paid for with fractional digits beyond the eighteenth if there is no room."""
    whole = _whole(a) + 10
    scale = a.scale if whole + a.scale <= 38 else min(a.scale, max(38 - whole, 18))
    return decimal(min(38, whole + scale), scale)


def holding(types: Iterable[ColumnType]) -> ColumnType:
    """The decimal for a value that may be of any of the types."""
    first, *rest = types
    for each in rest:
        first = with_room(max(_whole(first), _whole(each)), max(first.scale, each.scale))
    return first


def literal_digits(value: Decimal) -> ColumnType:
    """0.050 has three digits, all of them fractional."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    whole = len(str(abs(int(value)))) if abs(value) >= 1 else 0
    return decimal(max(1, whole - exponent), -exponent)


def _whole(type: ColumnType) -> int:
    return type.precision - type.scale


# --- numbers --------------------------------------------------------------------------------------------------------


def half_up(number: Fraction, scale: int) -> int:
    """The number in units of 10^-scale, halves away from zero. `scale` may be negative."""
    units = abs(number) * Fraction(10) ** scale
    rounded = int(units) + (1 if units - int(units) >= Fraction(1, 2) else 0)
    return -rounded if number < 0 else rounded


def as_decimal(number: Fraction, type: ColumnType) -> Decimal:
    """The number at the digits of the type; too many whole digits fail the run."""
    units = half_up(number, type.scale)
    if abs(units) >= 10**type.precision:
        raise overflow()
    return Decimal(units).scaleb(-type.scale, _WIDE)


def as_integer(number: int) -> int:
    """64 bits or failure."""
    if not -(2**63) <= number < 2**63:
        raise overflow()
    return number


def as_moment(value: date | datetime) -> datetime:
    """A date is the midnight it begins with, in UTC."""
    return value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


# --- into a column --------------------------------------------------------------------------------------------------


def goes_into(value: ColumnType, target: ColumnType) -> bool:
    """The typing rule of update: the same kind, integer into decimal, date into timestamp, NULL into anything."""
    widening = {("integer", "decimal"), ("date", "timestamp")}
    return value.kind in ("null", target.kind) or (value.kind, target.kind) in widening


def put(value: Any, target: ColumnType) -> object:
    """The value as one of the target type."""
    if value is None:
        return None
    if target.kind == "decimal":
        return as_decimal(Fraction(value), target)
    if target.kind == "integer":
        return as_integer(int(value))
    if target.kind == "timestamp":
        return as_moment(value)
    return value
