"""Arithmetic and aggregates: exact, then rounded once into the type of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tallybook.model.columns import DATE, INTEGER, NULL, ColumnType, decimal

from . import values
from .expressions import Context, Meaning, common_type, require
from .functions import AGGREGATES, ANYTHING, FUNCTIONS, NUMBERS, ORDERED, Args, evaluated, function, simple, strict
from .functions_text import later
from .values import RefusedError, half_up, put


def _arithmetic(
    compute: Callable[[Fraction, Fraction], Fraction], digits: Callable[[ColumnType, ColumnType], ColumnType]
) -> Callable[[Args, Context], Meaning]:
    """Two integers give an integer, a decimal among them a decimal."""

    def define(args: Args, _context: Context) -> Meaning:
        a, b = (require(arg, *NUMBERS) for arg in args)
        whole = all(arg.type in (INTEGER, NULL) for arg in args)
        type = INTEGER if whole else digits(a.digits, b.digits)
        return strict(type, lambda x, y: compute(Fraction(x), Fraction(y)), args)

    return define


def _days(sign: int, otherwise: Callable[[Args, Context], Meaning]) -> Callable[[Args, Context], Meaning]:
    """date ± integer is days, integer + date too."""

    def define(args: Args, context: Context) -> Meaning:
        kinds = [arg.type.kind for arg in args]
        if kinds[0] == "date":
            return strict(DATE, lambda d, n: later(d, sign * n), [args[0], require(args[1], "integer")])
        if kinds[1] == "date" and sign > 0:
            return strict(DATE, lambda n, d: later(d, n), [require(args[0], "integer"), args[1]])
        return otherwise(args, context)

    return define


def _by_zero(type: Callable[[Meaning, Meaning], ColumnType], compute: Callable[[Fraction, Fraction], Fraction]) -> Any:
    """Dividing by zero gives NULL."""

    def define(args: Args, _context: Context) -> Meaning:
        a, b = (require(arg, *NUMBERS) for arg in args)
        quotient = strict(type(a, b), lambda x, y: compute(Fraction(x), Fraction(y)), args)

        def of(row: Any) -> object:
            divisor = evaluated(args, row)[1]
            return None if divisor == 0 else quotient.of(row)

        return Meaning(quotient.type, of)

    return define


def _remainder(x: Fraction, y: Fraction) -> Fraction:
    """With the sign of the dividend."""
    return x - y * int(x / y)


FUNCTIONS["+"] = _days(1, _arithmetic(lambda x, y: x + y, values.added))
FUNCTIONS["-"] = _days(-1, _arithmetic(lambda x, y: x - y, values.added))
FUNCTIONS["*"] = _arithmetic(lambda x, y: x * y, values.multiplied)
FUNCTIONS["/"] = _by_zero(lambda a, b: values.divided(a.digits, b.digits), lambda x, y: x / y)
FUNCTIONS["%"] = FUNCTIONS["MOD"] = _by_zero(
    lambda a, b: INTEGER if a.type == b.type == INTEGER else values.remainder(a.digits, b.digits), _remainder
)


@function("NEGATE")
def _negate(args: Args, _context: Context) -> Meaning:
    return strict(require(args[0], *NUMBERS).type, lambda x: -Fraction(x), args)


@function("ABS")
def _abs(args: Args, _context: Context) -> Meaning:
    return strict(require(args[0], *NUMBERS).type, lambda x: abs(Fraction(x)), args)


@function("ROUND")
def _round(args: Args, _context: Context) -> Meaning:
    number, digits = require(args[0], *NUMBERS), args[1].literal if len(args) > 1 else 0
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > 38:
        raise RefusedError("TypeMismatch")
    if number.type == INTEGER or digits <= 0:
        return strict(INTEGER, lambda x: half_up(Fraction(x), min(digits, 0)) * 10 ** max(-digits, 0), args[:1])
    kept = number.type
    if digits < kept.scale:
        kept = values.with_room(kept.precision - kept.scale + 1, digits)
    return strict(kept, lambda x: Fraction(half_up(Fraction(x), digits), 10**digits), args[:1])


simple("FLOOR", [NUMBERS], INTEGER, lambda x: Fraction(x).__floor__())
simple("CEIL", [NUMBERS], INTEGER, lambda x: Fraction(x).__ceil__())


def _extreme(pick: Callable[..., object]) -> Callable[[Args, Context], Meaning]:
    def define(args: Args, _context: Context) -> Meaning:
        type = common_type([require(arg, *ORDERED) for arg in args])
        at_type = [replace(arg, of=lambda row, arg=arg: put(arg.of(row), type)) for arg in args]
        return strict(type, lambda *found: pick(found), at_type)

    return define


FUNCTIONS["MIN"] = _extreme(min)
FUNCTIONS["MAX"] = _extreme(max)


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


_aggregate("SUM", NUMBERS, lambda arg: values.summed(arg.digits), _sum)
_aggregate("AVG", NUMBERS, lambda arg: values.divided(values.summed(arg.digits), decimal(19, 0)), _average)
_aggregate("COUNT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(found))
_aggregate("COUNT_DISTINCT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(set(found)))
_aggregate("MIN_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: min(found, default=None))
_aggregate("MAX_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: max(found, default=None))
AGGREGATES["COUNT_ALL"] = lambda _args: Meaning(INTEGER, lambda group: len(group.rows))
