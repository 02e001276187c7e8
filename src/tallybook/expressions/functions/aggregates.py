"""Aggregate functions: they compute one value from many rows, and skip NULLs as SQL does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tallybook.expressions import decimals
from tallybook.expressions.functions.arithmetic import as_decimal, quotient
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    ANYTHING,
    NUMBER,
    ORDERED,
    Accepts,
    Argument,
    Building,
    Function,
    Param,
    always,
    params,
    register,
    same_as,
)
from tallybook.model.columns import INTEGER, INTEGER_AS_DECIMAL, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import Column


def _sum(c: Building, x: Column) -> Column:
    """Values are brought to the scale of the sum before they are added: Spark's sum keeps the scale it is given."""
    number = c.args[0].widened
    value = as_decimal(c, x, c.args[0])
    return F.sum(value if decimals.summed(number).scale == number.scale else c.cast(value, decimals.summed(number)))


def _average(c: Building, x: Column) -> Column:
    """The sum by the count, with all the digits a division keeps."""
    return quotient(c, _sum(c, x), F.count(x), INTEGER_AS_DECIMAL)


def _aggregate(
    name: str,
    accepts: Accepts,
    result: Callable[[Sequence[Argument]], ColumnType],
    summary: str,
    example: tuple[str, str],
    build: Callable[..., Column],
) -> None:
    shape = params(Param("the value", accepts))
    register(
        Function(
            name,
            "aggregates",
            shape,
            f"{name}(value)",
            result,
            summary,
            example,
            build,
            compute=None,
            aggregate=True,
            null_safe=True,
        )
    )


_aggregate(
    "SUM",
    NUMBER,
    lambda args: decimals.summed(args[0].widened),
    "The sum, a decimal; of integers it may also be written into an integer column.",
    ("SUM(amount)", "30.50"),
    _sum,
)
_aggregate(
    "AVG",
    NUMBER,
    lambda args: decimals.divided(decimals.summed(args[0].widened), INTEGER_AS_DECIMAL),
    "The average of the values that are not NULL, a decimal.",
    ("AVG(amount)", "15.25"),
    _average,
)
_aggregate(
    "COUNT",
    ANYTHING,
    always(INTEGER),
    "The number of values that are not NULL; COUNT(*) counts rows.",
    ("COUNT(amount)", "2"),
    lambda c, x: F.count(x),
)
register(
    Function(
        "COUNT_ALL",
        "aggregates",
        params(),
        "COUNT_ALL(), or COUNT(*)",
        always(INTEGER),
        "The number of rows.",
        ("COUNT(*)", "3"),
        lambda c: F.count(F.lit(1)),
        compute=None,
        aggregate=True,
        null_safe=True,
    )
)
_aggregate(
    "COUNT_DISTINCT",
    ANYTHING,
    always(INTEGER),
    "The number of distinct values that are not NULL.",
    ("COUNT_DISTINCT(amount)", "2"),
    lambda c, x: F.count_distinct(x),
)
_aggregate(
    "MIN_AGG",
    ORDERED,
    same_as(0),
    "The smallest value of all rows.",
    ("MIN_AGG(amount)", "10.00"),
    lambda c, x: F.min(x),
)
_aggregate(
    "MAX_AGG",
    ORDERED,
    same_as(0),
    "The largest value of all rows.",
    ("MAX_AGG(amount)", "20.50"),
    lambda c, x: F.max(x),
)
