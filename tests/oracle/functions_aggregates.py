"""Aggregates: of the values of a group that are not NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any

from tallybook.model.columns import INTEGER, STRING, ColumnType, decimal

from . import values
from .expressions import Group, Meaning, require
from .functions import AGGREGATES, ANYTHING, NUMBERS, ORDERED, Args
from .values import RefusedError, half_up, put


def _aggregate(name: str, kinds: Sequence[str], type: Callable[[Meaning], ColumnType], compute: Any) -> None:
    """`compute` gets the type and the values of the group that are not NULL."""

    def define(args: Args) -> Meaning:
        arg = require(args[0], *kinds)
        known = type(arg)

        def of(group: Any) -> object:
            found = [value for value in (arg.of(row) for row in group.rows) if value is not None]
            return put(compute(arg, found), known)

        return Meaning(known, of, sums_integers=name == "SUM" and arg.type == INTEGER)

    AGGREGATES[name] = define


def _sum(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    """Values are brought to the digits of the sum before they are added."""
    type = values.summed(arg.digits)
    return sum((Fraction(values.as_decimal(Fraction(each), type)) for each in found), Fraction(0)) if found else None


def _average(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    """The SUM, as SUM gives it, divided by the COUNT."""
    total: Any = put(_sum(arg, found), values.summed(arg.digits))
    return None if total is None else Fraction(total) / len(found)


def _summed(arg: Meaning) -> ColumnType:
    return values.summed(arg.digits)


def _averaged(arg: Meaning) -> ColumnType:
    return values.divided(_summed(arg), decimal(19, 0))


_aggregate("SUM", NUMBERS, _summed, _sum)
_aggregate("AVG", NUMBERS, _averaged, _average)
_aggregate("COUNT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(found))
_aggregate("COUNT_DISTINCT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(set(found)))
_aggregate("MIN_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: min(found, default=None))
_aggregate("MAX_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: max(found, default=None))
AGGREGATES["COUNT_ALL"] = lambda _args: Meaning(INTEGER, lambda group: len(group.rows))


def _only_if(name: str) -> None:
    """NAME_IF(value, condition) is NAME over the rows for which the condition is true."""

    def define(args: Args) -> Meaning:
        value, test = args
        require(test, "boolean")
        plain = AGGREGATES[name]([value])
        return replace(
            plain, of=lambda group: plain.of(Group(group.keys, [r for r in group.rows if test.of(r) is True]))
        )

    AGGREGATES[f"{name}_IF"] = define


_only_if("SUM")
_only_if("AVG")


def _count_if(args: Args) -> Meaning:
    test = require(args[0], "boolean")
    return Meaning(INTEGER, lambda group: sum(test.of(row) is True for row in group.rows))


AGGREGATES["COUNT_IF"] = _count_if


def _by_order(pick: Callable[..., Any]) -> Callable[[Args], Meaning]:
    """The value of the first or last row, sorted by order and then by value."""

    def define(args: Args) -> Meaning:
        value, order = args[0], require(args[1], *ORDERED)

        def of(group: Any) -> object:
            pairs = [(order.of(row), value.of(row)) for row in group.rows]
            complete = [pair for pair in pairs if None not in pair]
            return pick(complete)[1] if complete else None

        return Meaning(value.type, of)

    return define


AGGREGATES["FIRST_BY"] = _by_order(min)
AGGREGATES["LAST_BY"] = _by_order(max)


def _string_agg(args: Args) -> Meaning:
    text, separator, order = require(args[0], "string"), args[1].literal, require(args[-1], *ORDERED)
    if not isinstance(separator, str):
        raise RefusedError("TypeMismatch")

    def of(group: Any) -> object:
        pairs = [(order.of(row) if len(args) > 2 else None, text.of(row)) for row in group.rows]
        ordered = sorted(pair for pair in pairs if None not in pair)
        last = sorted(said for by, said in pairs if by is None and said is not None)
        return separator.join([*(said for _, said in ordered), *last]) if ordered or last else None

    return Meaning(STRING, of)


AGGREGATES["STRING_AGG"] = _string_agg


def _whole(type: ColumnType) -> int:
    return type.precision - type.scale


def _median(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    """Half of a + b, where a + b has the digits of a sum."""
    if not found:
        return None
    ranked = sorted(map(Fraction, found))
    low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    return Fraction(values.as_decimal(low + high, values.added(arg.digits, arg.digits))) / 2


def _spread(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    """To 15 digits from the first of the largest deviation, with the exact square root."""
    if len(found) < 2:
        return None
    scale = values.added(arg.digits, arg.digits).scale
    numbers = [Fraction(half_up(Fraction(each), scale), 10**scale) for each in found]
    fits = decimal(max(1, _whole(arg.digits) + scale), scale)
    for number in numbers:
        values.as_decimal(number, fits)
    values.as_decimal(sum(numbers, Fraction(0)), decimal(38, scale))
    mean = sum(numbers, Fraction(0)) / len(numbers)
    about = Fraction(half_up(mean, scale), 10**scale)
    largest = max(abs(number - about) for number in numbers)
    exponent = len(str(int(largest * 10**scale))) - scale if largest else 0
    variance = sum(((number - mean) ** 2 for number in numbers), Fraction(0)) / (len(numbers) - 1)
    units = int(4 * variance * Fraction(10) ** (2 * (15 - exponent)))
    return Fraction((1 + isqrt(units)) // 2) * Fraction(10) ** (exponent - 15)


_aggregate("MEDIAN", NUMBERS, lambda arg: values.with_room(_whole(arg.digits) + 1, arg.digits.scale + 1), _median)
_aggregate("STDDEV", NUMBERS, lambda arg: values.with_room(_whole(arg.digits) + 1, arg.digits.scale + 6), _spread)
