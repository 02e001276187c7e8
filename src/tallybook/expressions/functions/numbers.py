"""Functions of numbers: signs, rounding, remainders, and the smallest and largest value of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from operator import and_
from typing import TYPE_CHECKING, Any

from tallybook.expressions import decimals
from tallybook.expressions.functions.arithmetic import arithmetic, compute_remainder, remainder
from tallybook.expressions.functions.spark import F, balanced
from tallybook.expressions.registry import (
    EVERY_ARGUMENT,
    NUMBER,
    ORDERED,
    WHOLE,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    always,
    params,
    register,
    same_as,
)
from tallybook.expressions.values import EXACT, cast, to_integer
from tallybook.model.columns import INTEGER, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_ROUND_DIGITS = 38


def _digits(args: Sequence[Argument]) -> int:
    return int(str(args[1].literal)) if len(args) > 1 else 0


def _rounded(args: Sequence[Argument]) -> ColumnType:
    type, digits = args[0].type, _digits(args)
    if digits <= 0 or type == INTEGER:
        return INTEGER
    return type if digits >= type.scale else decimals.fitted(type.integer_digits + 1, digits)


def _refuse_digits(args: Sequence[Argument]) -> Refusal | None:
    too_many = abs(_digits(args)) > MAX_ROUND_DIGITS
    return Refusal(f"ROUND takes at most {MAX_ROUND_DIGITS} digits") if too_many else None


def _round(c: Building, x: Column, _digits_column: Column | None = None) -> Column:
    digits = _digits(c.args)
    return x if c.args[0].type == INTEGER and digits >= 0 else c.cast(F.round(x, digits), c.result)


def _compute_round(c: Computing, x: Any, digits: int = 0) -> object:
    return cast(Decimal(x).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT), c.result)


def _extreme(pick: str) -> Callable[..., Column]:
    """Spark's least and greatest pass over NULLs; ours are NULL when one argument is."""

    def build(c: Building, *values: Column) -> Column:
        if len(values) == 1:
            return values[0]
        all_known = balanced(and_, [value.isNotNull() for value in values])
        return F.when(all_known, getattr(F, pick)(*values))

    return build


def _compute_extreme(pick: Callable[..., object]) -> Callable[..., object]:
    return lambda _c, *values: pick(values)


_EXACT_MINUS = 34
"""Digits up to which Spark's own minus is exact."""


def _negated(c: Building, x: Column) -> Column:
    """Spark's own minus keeps 34 digits of a decimal; of longer ones the sign is changed in their text."""
    if not _is_long(c):
        return -x
    return c.cast(F.regexp_replace(F.concat(F.lit("-"), x.cast("string")), "^--", ""), c.result)


def _absolute(c: Building, x: Column) -> Column:
    return c.cast(F.ltrim(x.cast("string"), F.lit("-")), c.result) if _is_long(c) else F.abs(x)


def _is_long(c: Building) -> bool:
    return c.result.kind == "decimal" and c.result.precision > _EXACT_MINUS


register(
    Function(
        "NEGATE",
        "numbers",
        params(Param("the number", NUMBER)),
        "-number",
        same_as(0),
        "The number with its sign changed.",
        ("-(2 + 3)", "-5"),
        _negated,
        compute=lambda c, x: cast(EXACT.minus(Decimal(x)), c.result),
        operator=True,
    )
)
register(
    Function(
        "ABS",
        "numbers",
        params(Param("the number", NUMBER)),
        "ABS(number)",
        same_as(0),
        "The number without its sign.",
        ("ABS(-2.5)", "2.5"),
        _absolute,
        compute=lambda c, x: cast(EXACT.abs(Decimal(x)), c.result),
    )
)
register(
    Function(
        "ROUND",
        "numbers",
        params(Param("the number", NUMBER), optional=[Param("the number of digits", WHOLE, literal=True)]),
        "ROUND(number, digits)",
        _rounded,
        "The number rounded half up, away from zero. Without digits, or with 0 or fewer, it is an integer.",
        ("ROUND(2.345, 2)", "2.35"),
        _round,
        compute=_compute_round,
        refuse=_refuse_digits,
    )
)
register(
    Function(
        "FLOOR",
        "numbers",
        params(Param("the number", NUMBER)),
        "FLOOR(number)",
        always(INTEGER),
        "The largest integer that is not above the number.",
        ("FLOOR(-1.5)", "-2"),
        lambda c, x: c.cast(F.floor(x), INTEGER),
        compute=lambda _c, x: to_integer(x, ROUND_FLOOR),
    )
)
register(
    Function(
        "CEIL",
        "numbers",
        params(Param("the number", NUMBER)),
        "CEIL(number)",
        always(INTEGER),
        "The smallest integer that is not below the number.",
        ("CEIL(1.2)", "2"),
        lambda c, x: c.cast(F.ceil(x), INTEGER),
        compute=lambda _c, x: to_integer(x, ROUND_CEILING),
    )
)
register(
    Function(
        "MOD",
        "numbers",
        params(Param("the number", NUMBER), Param("the divisor", NUMBER)),
        "MOD(number, divisor)",
        arithmetic(decimals.remainder),
        "The remainder, with the sign of the number; NULL when dividing by zero.",
        ("MOD(7, 3)", "1"),
        remainder,
        compute=compute_remainder,
        repeats=(1,),
    )
)
for _name, _pick, _pick_value, _meaning, _example in (
    (
        "MIN",
        "least",
        min,
        "The smallest of the values in this row; NULL when one of them is NULL.",
        ("MIN(3, 1.5)", "1.5"),
    ),
    (
        "MAX",
        "greatest",
        max,
        "The largest of the values in this row; NULL when one of them is NULL.",
        ("MAX(3, 1.5)", "3.0"),
    ),
):
    register(
        Function(
            _name,
            "numbers",
            params(Param("a value", ORDERED, group="value"), repeat=Param("a value", ORDERED, group="value")),
            f"{_name}(value, …)",
            same_as(0),
            _meaning,
            _example,
            _extreme(_pick),
            compute=_compute_extreme(_pick_value),
            repeats=EVERY_ARGUMENT,
        )
    )
