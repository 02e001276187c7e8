"""Arithmetic: exact, then rounded once into the type of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tallybook.model.columns import DATE, INTEGER, NULL, ColumnType

from . import values
from .expressions import Context, Meaning, common_type, literal, require
from .functions import FUNCTIONS, NUMBERS, ORDERED, Args, evaluated, function, simple, strict
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


def _rounding(cut: Callable[[Fraction], int]) -> Callable[[Args, Context], Meaning]:
    """`cut` makes a whole number out of a number in units of the last digit."""

    def define(args: Args, _context: Context) -> Meaning:
        number, digits = require(args[0], *NUMBERS), args[1].literal if len(args) > 1 else 0
        if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > 38:
            raise RefusedError("TypeMismatch")
        if number.type == INTEGER or digits <= 0:
            unit = 10 ** max(-digits, 0)
            return strict(INTEGER, lambda x: cut(Fraction(x) / unit) * unit, args[:1])
        kept = number.type
        if digits < kept.scale:
            kept = values.with_room(kept.precision - kept.scale + 1, digits)
        return strict(kept, lambda x: Fraction(cut(Fraction(x) * 10**digits), 10**digits), args[:1])

    return define


def _away(units: Fraction) -> int:
    return units.__ceil__() if units > 0 else units.__floor__()


FUNCTIONS["ROUND"] = _rounding(lambda units: half_up(units, 0))
FUNCTIONS["ROUND_HALF_EVEN"] = _rounding(round)
FUNCTIONS["ROUNDUP"] = _rounding(_away)
FUNCTIONS["ROUNDDOWN"] = FUNCTIONS["TRUNC"] = _rounding(int)
simple("SIGN", [NUMBERS], INTEGER, lambda x: 1 if x > 0 else -1 if x < 0 else 0)


@function("POWER")
def _power(args: Args, context: Context) -> Meaning:
    """A product of two halves, as `*` multiplies them; below zero 1 / POWER(x, -n), as `/` divides."""
    number, n = require(args[0], *NUMBERS), args[1].literal
    if not isinstance(n, int) or isinstance(n, bool) or abs(n) > 100:
        raise RefusedError("TypeMismatch")
    if n == 0:
        return strict(INTEGER, lambda _x: 1, [number])
    product = _multiplied([number] * abs(n), context)
    return product if n > 0 else FUNCTIONS["/"]([literal(1), product], context)


def _multiplied(factors: Args, context: Context) -> Meaning:
    """An integer product is one whatever the digits of its factors; so literals count as any integer."""
    if len(factors) == 1:
        return replace(factors[0], literal=None)
    half = len(factors) // 2
    return FUNCTIONS["*"]([_multiplied(factors[:half], context), _multiplied(factors[half:], context)], context)


@function("PERCENT_OF")
def _percent_of(args: Args, context: Context) -> Meaning:
    part, whole = (require(arg, *NUMBERS) for arg in args)
    at_decimals = Meaning(part.digits, lambda row: put(part.of(row), part.digits))
    return FUNCTIONS["/"]([FUNCTIONS["*"]([at_decimals, literal(100)], context), whole], context)


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
