"""Aggregate functions: they compute one value from many rows, and skip NULLs as SQL does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tallybook.expressions import decimals
from tallybook.expressions.functions.arithmetic import as_decimal, quotient
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    ANYTHING,
    FUNCTIONS,
    NUMBER,
    ORDERED,
    TEXT,
    TRUTH,
    Accepts,
    Building,
    Function,
    Param,
    ResultType,
    always,
    params,
    register,
    same_as,
)
from tallybook.model.columns import INTEGER, INTEGER_AS_DECIMAL, STRING

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
    result: ResultType,
    summary: str,
    example: tuple[str, str],
    build: Callable[..., Column],
    *,
    needs_all_values: bool = False,
) -> None:
    register(
        Function(
            name,
            "aggregates",
            params(Param("the value", accepts)),
            f"{name}(value)",
            result,
            summary,
            example,
            build,
            compute=None,
            aggregate=True,
            needs_all_values=needs_all_values,
            null_safe=True,
        )
    )


_aggregate(
    "SUM",
    NUMBER,
    ResultType("decimal", lambda args: decimals.summed(args[0].widened)),
    "The sum, a decimal; of integers it may also be written into an integer column.",
    ("SUM(amount)", "30.50"),
    _sum,
)
_aggregate(
    "AVG",
    NUMBER,
    ResultType("decimal", lambda args: decimals.divided(decimals.summed(args[0].widened), INTEGER_AS_DECIMAL)),
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
    needs_all_values=True,
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


def _chosen(build: Callable[[Building, Column], Column]) -> Callable[[Building, Column, Column], Column]:
    """The aggregate of the values for which the condition is true."""
    return lambda c, x, condition: build(c, F.when(condition, x))


for _name, _result, _build, _meaning, _example in (
    (
        "SUM_IF",
        FUNCTIONS["SUM"].result,
        _sum,
        "The sum of the values for which the condition is true; NULL if there are none, like SUM.",
        ('SUM_IF(amount, region = "EMEA")', "10.00"),
    ),
    (
        "AVG_IF",
        FUNCTIONS["AVG"].result,
        _average,
        "The average of the values for which the condition is true.",
        ("AVG_IF(amount, amount > 5)", "15.25"),
    ),
):
    register(
        Function(
            _name,
            "aggregates",
            params(Param("the value", NUMBER), Param("the condition", TRUTH)),
            f"{_name}(value, condition)",
            _result,
            _meaning,
            _example,
            _chosen(_build),
            compute=None,
            aggregate=True,
            null_safe=True,
        )
    )
register(
    Function(
        "COUNT_IF",
        "aggregates",
        params(Param("the condition", TRUTH)),
        "COUNT_IF(condition)",
        always(INTEGER),
        "The number of rows for which the condition is true.",
        ('COUNT_IF(region = "EMEA")', "2"),
        lambda _c, condition: F.count_if(condition),
        compute=None,
        aggregate=True,
        null_safe=True,
    )
)


def _by_order(pick: str) -> Callable[..., Column]:
    """The value of the first or last row by order and then by value, so that equal orders leave nothing to chance."""

    def build(_c: Building, value: Column, order: Column) -> Column:
        row = F.struct(order.alias("order"), value.alias("value"))
        first: Column = getattr(F, pick)(F.when(value.isNotNull() & order.isNotNull(), row))
        return first.getField("value")

    return build


for _name, _pick, _which, _extreme in (("FIRST_BY", "min", "smallest", "APAC"), ("LAST_BY", "max", "largest", "EMEA")):
    register(
        Function(
            _name,
            "aggregates",
            params(Param("the value", ANYTHING), Param("the order", ORDERED)),
            f"{_name}(value, order)",
            same_as(0),
            f"The value of the row with the {_which} order. If several rows have it, the {_which} of their values. "
            "Rows without a value or an order do not count.",
            (f"{_name}(region, day)", _extreme),
            _by_order(_pick),
            compute=None,
            aggregate=True,
            null_safe=True,
        )
    )


def _joined(c: Building, text: Column, _separator: Column, order: Column | None = None) -> Column:
    """Rows are sorted by order and then by text; those without an order come last."""
    by = F.lit(None) if order is None else order
    row = F.struct(by.isNull().alias("last"), by.alias("order"), text.alias("text"))
    rows = F.sort_array(F.collect_list(F.when(text.isNotNull(), row)))
    texts = F.transform(rows, lambda each: each.getField("text"))
    return F.when(F.count(text) > 0, F.array_join(texts, str(c.args[1].literal)))


register(
    Function(
        "STRING_AGG",
        "aggregates",
        params(
            Param("the text", TEXT),
            Param("the separator", TEXT, literal=True),
            optional=[Param("the order", ORDERED)],
        ),
        'STRING_AGG(text, "separator", order)',
        always(STRING),
        "The texts joined in the order of the third argument. Texts with the same order, or all texts if there is no "
        "third argument, are sorted by their text. Texts whose order is NULL come last. NULL if there are no texts.",
        ('STRING_AGG(region, ", ", day)', "APAC, EMEA, EMEA"),
        _joined,
        compute=None,
        aggregate=True,
        needs_all_values=True,
        null_safe=True,
    )
)
