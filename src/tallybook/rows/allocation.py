"""Distributes the amounts of rows over their targets, exact to the last digit.

Amounts and drivers are counted in units of their last digit, as decimals without a fraction: their products and
remainders are exact, or the job fails because they have more than 38 digits. Each target gets its share rounded down.
What is left of the amount goes to the largest fractions, one unit each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tallybook.expressions.compile import cast, column_named
from tallybook.model.columns import INTEGER, MAX_PRECISION, ColumnType, decimal
from tallybook.rows import sql
from tallybook.rows.raising import raising

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

POOL = sql.internal("pool")
"""The id of the row whose amount is distributed."""
RANK = sql.internal("rank")
"""Numbers the new rows of a pool row from 1."""
TARGET = sql.internal("target")
"""A helper column of targets that is never NULL: without it, a target of NULLs would look like none."""
_UNITS, _DRIVER, _ZEROS, _TOTAL, _FLOOR, _REST, _LEFT = (
    sql.internal(f"allocated {name}") for name in ("units", "driver", "zeros", "total", "floor", "rest", "left")
)


@dataclass(frozen=True)
class Distribution:
    """What is distributed: an amount of a type, by a driver of a type."""

    seq: int
    amount: Column
    amount_type: ColumnType
    driver: Column
    driver_type: ColumnType
    named: Column
    """Names the pool row in a failure."""
    target: Column
    """Names the target in a failure."""
    order: Sequence[Column]
    """The order of the targets, which decides between equal fractions."""

    def of(self, pairs: DataFrame) -> DataFrame:
        """Keeps the pairs of a pool row and a target whose driver is above zero and numbers those of a row. `share`
        is the part that the target gets.

        A pool row without a target has one pair, in which TARGET is NULL. The checks are part of the filter, so Spark
        cannot leave them out.
        """
        counted = pairs.withColumns(
            {_UNITS: F.abs(whole(self.amount, self.amount_type)), _DRIVER: self._checked_driver()}
        )
        if _whole_type(self.amount_type).precision + _whole_type(self.driver_type).precision > MAX_PRECISION:
            counted = _without_common_zeros(counted, _whole_type(self.driver_type))
        totalled = counted.withColumns({_TOTAL: F.expr(f"sum({sql.name(_DRIVER)}) OVER ({_BY_POOL})")})
        positive = totalled.filter(
            F.when(column_named(_TOTAL) == 0, self._failing("zero").cast("boolean")).otherwise(
                column_named(_DRIVER) > 0
            )
        )
        product, total = f"({sql.name(_UNITS)} * {sql.name(_DRIVER)})", sql.name(_TOTAL)
        rest = positive.withColumns({_REST: F.expr(f"{product} % {total}")})
        floor = _quotient(f"({product} - {sql.name(_REST)})", total, _whole_type(self.amount_type))
        floors = rest.withColumns({_FLOOR: F.expr(floor)})
        left = f"{sql.name(_UNITS)} - sum({sql.name(_FLOOR)}) OVER ({_BY_POOL})"
        ordered = {sql.internal(f"allocated order {index}"): column for index, column in enumerate(self.order)}
        keys = ", ".join([f"{sql.name(_REST)} DESC", *map(sql.name, ordered)])
        rank = f"row_number() OVER ({_BY_POOL} ORDER BY {keys})"
        return floors.withColumns(ordered).withColumns({_LEFT: F.expr(left), RANK: F.expr(rank)})

    @property
    def share(self) -> Column:
        """What the target of a numbered pair gets."""
        extra = F.when(column_named(RANK) <= column_named(_LEFT), 1).otherwise(0)
        units = column_named(_FLOOR) + extra
        size = units if self.amount_type == INTEGER else scaled(units, self.amount_type)
        return cast(F.when(self.amount < 0, -size).otherwise(size), self.amount_type)

    def _checked_driver(self) -> Column:
        value = F.when(column_named(TARGET).isNull(), self._failing("target"))
        for reason, wrong in {"null": self.driver.isNull(), "negative": self.driver < 0}.items():
            value = value.when(wrong, self._failing(reason, target=self.target, driver=self.driver))
        return cast(value.otherwise(whole(self.driver, self.driver_type)), _whole_type(self.driver_type))

    def _failing(self, reason: str, **details: Column) -> Column:
        return raising("AllocationFailed", seq=str(self.seq), reason=reason, row=self.named, **details)


_BY_POOL = f"PARTITION BY {sql.name(POOL)}"


def _without_common_zeros(counted: DataFrame, type: ColumnType) -> DataFrame:
    """Divides the drivers of each pool row by the largest power of ten that divides all of them.

    Only their proportions count. A driver of decimal(38,18) ends in zeros, which would leave no digits for the amount.
    """
    driver = sql.name(_DRIVER)
    digits = f"CAST({driver} AS STRING)"
    zeros = f"CASE WHEN {driver} > 0 THEN length({digits}) - length(trim(TRAILING '0' FROM {digits})) END"
    shorter = f"left({digits}, length({digits}) - {sql.name(_ZEROS)})"
    common = counted.withColumns({_ZEROS: F.expr(f"min({zeros}) OVER ({_BY_POOL})")})
    return common.withColumns(
        {_DRIVER: F.expr(f"CASE WHEN {driver} > 0 THEN {sql.typed(shorter, type)} ELSE {driver} END")}
    )


def _quotient(multiple: str, total: str, type: ColumnType) -> str:
    """Returns SQL that divides a multiple of a total by it, exactly.

    Spark gives a quotient 32 digits before the point. More are possible only for a total below a million, where the
    multiple is divided in two parts.
    """
    direct = sql.typed(f"{multiple} / {total}", type)
    if type.precision <= MAX_PRECISION - 6:
        return direct
    high = sql.typed(f"({multiple} - {multiple} % 1000000) / 1000000", decimal(MAX_PRECISION - 6, 0))
    first = sql.typed(f"({high} - {high} % {total}) / {total}", decimal(MAX_PRECISION, 0))
    second = sql.typed(f"({high} % {total} * 1000000 + {multiple} % 1000000) / {total}", decimal(12, 0))
    in_parts = sql.typed(f"{first} * 1000000 + {second}", type)
    return f"CASE WHEN {total} < 1000000 THEN {in_parts} ELSE {direct} END"


def described(values: Mapping[str, Column]) -> Column:
    """Text that names a row: `region EMEA, month 3`."""
    shown = [
        F.concat_ws(" ", F.lit(name), F.coalesce(value.cast("string"), F.lit("NULL"))) for name, value in values.items()
    ]
    return F.concat_ws(", ", *shown)


def _whole_type(type: ColumnType) -> ColumnType:
    return decimal(19, 0) if type == INTEGER else decimal(type.precision, 0)


def _fits(type: ColumnType) -> bool:
    """True if Spark multiplies such a number by a power of ten without giving up digits of its scale."""
    return type.precision + type.scale + 2 <= MAX_PRECISION


def whole(value: Column, type: ColumnType) -> Column:
    """A number in units of its last digit: 12.34 is 1234."""
    if type.kind == "decimal" and type.scale > 0:
        if _fits(type):
            value = value * F.lit(str(10**type.scale)).cast(f"decimal({type.scale + 1},0)")
        else:
            value = F.replace(value.cast("string"), F.lit("."), F.lit(""))
    return cast(value, _whole_type(type))


def scaled(units: Column, type: ColumnType) -> Column:
    """The decimal that has so many units of its last digit, zero or more."""
    count = cast(units, _whole_type(type))
    if type.scale > 0:
        if _fits(type):
            count = count * F.lit(f"0.{1:0{type.scale}}").cast(f"decimal({type.scale + 1},{type.scale})")
        else:
            digits = F.lpad(count.cast("string"), type.precision + 1, "0")
            point = type.precision + 1 - type.scale
            count = F.concat(F.substring(digits, 1, point), F.lit("."), F.substring(digits, point + 1, type.scale))
    return cast(count, type)
