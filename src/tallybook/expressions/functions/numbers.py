"""Functions of numbers: signs, powers, percentages, remainders, and the smallest and largest value of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import and_, mul
from typing import TYPE_CHECKING, Any

from tallybook.expressions import decimals
from tallybook.expressions.functions.arithmetic import arithmetic, as_decimal, compute_remainder, quotient, remainder
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
    ResultType,
    always,
    params,
    register,
    same_as,
)
from tallybook.expressions.values import EXACT, cast
from tallybook.expressions.values import quotient as quotient_of
from tallybook.model.columns import INTEGER, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_EXPONENT = 100
_ONE, _HUNDRED = decimal(1, 0), decimal(3, 0)


def _exponent(args: Sequence[Argument]) -> int:
    return int(str(args[1].literal))


def _refuse_exponent(args: Sequence[Argument]) -> Refusal | None:
    if abs(_exponent(args)) <= MAX_EXPONENT:
        return None
    return Refusal(f"POWER takes an exponent of at most {MAX_EXPONENT}", "nest it, as in POWER(POWER(x, 30), 12)")


def _product_type(factor: ColumnType, count: int) -> ColumnType:
    """The type of a product of equal factors, which is multiplied from two halves: that rounds least often."""
    if count == 1 or factor == INTEGER:
        return factor
    half = count // 2
    return decimals.multiplied(_product_type(factor, half), _product_type(factor, count - half))


def _product(factor: Any, type: ColumnType, count: int) -> Any:
    """The same product of a plain number; the type is that of the factor."""
    if count == 1:
        return factor
    half = count // 2
    halves = _product(factor, type, half), _product(factor, type, count - half)
    return cast(EXACT.multiply(*map(Decimal, halves)), _product_type(type, count))


def _power_type(args: Sequence[Argument]) -> ColumnType:
    exponent = _exponent(args)
    if exponent == 0:
        return INTEGER
    product = _product_type(args[0].type, abs(exponent))
    return product if exponent > 0 else decimals.divided(_ONE, Argument(product).widened)


def _power(c: Building, x: Column, _exponent_column: Column) -> Column:
    exponent = _exponent(c.args)
    if exponent == 0:
        return F.when(x.isNotNull(), c.cast(F.lit(1), INTEGER))
    product = balanced(mul, [x] * abs(exponent))
    if exponent > 0:
        return product
    divisor = Argument(_product_type(c.args[0].type, -exponent)).widened
    return quotient(c, c.cast(F.lit(1), _ONE), product, divisor)


def _compute_power(c: Computing, x: Any, exponent: int) -> object:
    if exponent == 0:
        return 1
    product = _product(x, c.args[0].type, abs(exponent))
    if exponent > 0:
        return product
    return cast(quotient_of(1, product), c.result) if product else None


def _percentage_type(args: Sequence[Argument]) -> ColumnType:
    return decimals.divided(decimals.multiplied(args[0].widened, _HUNDRED), args[1].widened)


def _percentage(c: Building, part: Column, whole: Column) -> Column:
    hundredfold = as_decimal(c, part, c.args[0]) * c.cast(F.lit(100), _HUNDRED)
    return quotient(c, hundredfold, whole, c.args[1].widened)


def _compute_percentage(c: Computing, part: Any, whole: Any) -> object:
    hundredfold = cast(EXACT.multiply(Decimal(part), Decimal(100)), decimals.multiplied(c.args[0].widened, _HUNDRED))
    return cast(quotient_of(hundredfold, whole), c.result) if whole else None


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
        same_as(0, "that of the number"),
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
        same_as(0, "that of the number"),
        "The number without its sign.",
        ("ABS(-2.5)", "2.5"),
        _absolute,
        compute=lambda c, x: cast(EXACT.abs(Decimal(x)), c.result),
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
register(
    Function(
        "SIGN",
        "numbers",
        params(Param("the number", NUMBER)),
        "SIGN(number)",
        always(INTEGER),
        "1 for a number above zero, -1 for one below, else 0.",
        ("SIGN(-2.5)", "-1"),
        lambda c, x: c.cast(F.signum(x), INTEGER),
        compute=lambda _c, x: (x > 0) - (x < 0),
    )
)
register(
    Function(
        "POWER",
        "numbers",
        params(Param("the number", NUMBER), Param("the exponent", WHOLE, literal=True)),
        "POWER(number, exponent)",
        ResultType("integer for integers, else decimal; decimal for an exponent below zero", _power_type),
        "The number multiplied by itself, with the digits of `*`. An exponent below zero divides 1 by the product; "
        "that is NULL for zero.",
        ("POWER(1.1, 2)", "1.21"),
        _power,
        compute=_compute_power,
        refuse=_refuse_exponent,
        repeats_often=(0,),
    )
)
register(
    Function(
        "PERCENT_OF",
        "numbers",
        params(Param("the part", NUMBER), Param("the whole", NUMBER)),
        "PERCENT_OF(part, whole)",
        ResultType("decimal", _percentage_type),
        "part * 100 / whole; NULL when the whole is zero.",
        ("PERCENT_OF(3, 12)", "25"),
        _percentage,
        compute=_compute_percentage,
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
            same_as(0, "the common type of the values"),
            _meaning,
            _example,
            _extreme(_pick),
            compute=_compute_extreme(_pick_value),
            repeats=EVERY_ARGUMENT,
        )
    )
