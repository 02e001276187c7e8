"""MEDIAN and STDDEV: exact decimals, whatever the order in which Spark meets the rows.

Spark's own compute with floats. These collect the values of a group in an array, so a group must fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tallybook.expressions import decimals
from tallybook.expressions.functions.arithmetic import as_decimal, quotient
from tallybook.expressions.functions.spark import F, computed_once
from tallybook.expressions.registry import NUMBER, Argument, Building, Function, Param, ResultType, params, register
from tallybook.model.columns import INTEGER_AS_DECIMAL, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

STDDEV_DIGITS = 15
"""Digits of STDDEV, counted from the first digit of the largest deviation from the mean."""
_MORE_DIGITS = 6
"""Fractional digits of STDDEV beyond those of its values."""
_TWO = decimal(1, 0)
_SHIFTED, _ADDED, _VARIANCE, _ROOT = "decimal(36,35)", "decimal(37,26)", "decimal(29,27)", "decimal(17,16)"
"""Types of numbers below 10 and of their sums: Spark gives the most digits to what it computes from them."""


def _median_type(args: Sequence[Argument]) -> ColumnType:
    """Half a sum of two values has one more digit on both sides."""
    number = args[0].widened
    return decimals.fitted(number.integer_digits + 1, number.scale + 1)


def _median(c: Building, x: Column) -> Column:
    values = F.sort_array(F.collect_list(as_decimal(c, x, c.args[0])))

    def middle(sorted_values: Column) -> Column:
        last = F.size(sorted_values) - 1
        low, high = (F.get(sorted_values, F.floor((last + n) / 2).cast("int")) for n in (0, 1))
        return c.cast(quotient(c, low + high, F.lit(2), _TWO), c.result)

    return computed_once(values, middle)


def _spread_type(args: Sequence[Argument]) -> ColumnType:
    number = args[0].widened
    return decimals.fitted(number.integer_digits + 1, number.scale + _MORE_DIGITS)


def _spread(c: Building, x: Column) -> Column:
    """The deviations are divided by a power of ten that brings the largest just below 1: no square of 38 digits fits
    into a decimal, and small deviations would lose theirs."""
    number = c.args[0].widened
    scale = decimals.added(number, number).scale
    value = c.cast(x, decimal(max(1, number.integer_digits + scale), scale))
    group = F.struct(F.collect_list(value).alias("values"), F.sum(value).alias("total"))

    def of_group(group: Column) -> Column:
        values = group.getField("values")
        mean = quotient(c, group.getField("total"), F.size(values), INTEGER_AS_DECIMAL)
        mean = mean.cast(f"decimal({max(1, number.integer_digits + scale)},{scale})")
        return computed_once(mean, lambda mean: of_deviations(F.transform(values, lambda value: value - mean)))

    def of_deviations(deviations: Column) -> Column:
        extremes = [_digits(extreme(deviations), scale) for extreme in (F.array_min, F.array_max)]
        return computed_once(
            deviations, lambda each: computed_once(F.greatest(*extremes), lambda k: of_shifted(each, k))
        )

    def of_shifted(deviations: Column, exponent: Column) -> Column:
        shifted = F.transform(deviations, lambda each: _shift(each, -exponent, _SHIFTED))
        variance = computed_once(shifted, lambda each: _variance(c, each))
        root = computed_once(variance, lambda each: F.when(each == 0, 0).otherwise(_root(each)))
        return _shift(root, exponent, f"decimal({c.result.precision},{c.result.scale})")

    return F.when(F.count(x) > 1, computed_once(group, of_group))


def _digits(x: Column, scale: int) -> Column:
    """The digits before the point, negative for zeros after it."""
    return F.char_length(F.ltrim(F.translate(x.cast("string"), "-.", ""), F.lit("0"))) - scale


def _shift(x: Column, exponent: Column, type: str) -> Column:
    """The number times a power of ten, exact: the exponent is added to its text."""
    return F.concat(x.cast("string"), F.lit("E"), exponent.cast("string")).cast(type)


def _variance(c: Building, values: Column) -> Column:
    count = F.size(values)
    mean = quotient(c, _total(values), count, INTEGER_AS_DECIMAL).cast(_SHIFTED)

    def squares(mean: Column) -> Column:
        return F.transform(values, lambda each: _square((each - mean).cast(_SHIFTED)))

    total = computed_once(mean, lambda mean: _total(squares(mean)))
    return quotient(c, total, count - 1, INTEGER_AS_DECIMAL).cast(_VARIANCE)


def _square(x: Column) -> Column:
    return x * x


def _total(values: Column) -> Column:
    return F.aggregate(values, F.lit(0).cast(_ADDED), lambda sum, each: (sum + each.cast(_ADDED)).cast(_ADDED))


def _root(x: Column) -> Column:
    """The square root to 20 digits: that of a float, made exact by a step of Newton's method."""

    def improved(guess: Column) -> Column:
        better = (guess + (x / guess).cast("decimal(22,20)")) * F.lit("0.5").cast("decimal(1,1)")
        return F.round(better, STDDEV_DIGITS)

    return computed_once(F.sqrt(x.cast("double")).cast(_ROOT), improved)


def _statistic(
    name: str,
    result: Callable[[Sequence[Argument]], ColumnType],
    summary: str,
    example: tuple[str, str],
    build: Callable[[Building, Column], Column],
) -> None:
    register(
        Function(
            name,
            "aggregates",
            params(Param("the value", NUMBER)),
            f"{name}(value)",
            ResultType("decimal", result),
            summary,
            example,
            build,
            compute=None,
            aggregate=True,
            needs_all_values=True,
            null_safe=True,
        )
    )


_statistic(
    "MEDIAN",
    _median_type,
    "The middle value, or half the sum of the two in the middle, with one more fractional digit than the values.",
    ("MEDIAN(amount)", "15.25"),
    _median,
)
_statistic(
    "STDDEV",
    _spread_type,
    f"The standard deviation of a sample, NULL for fewer than two values. It is rounded to {STDDEV_DIGITS} digits, "
    "counted from the first digit of the largest deviation from the mean, and to "
    f"{_MORE_DIGITS} more fractional digits than the values have.",
    ("STDDEV(amount)", "7.42462120"),
    _spread,
)
