"""The time between two dates in months and in years."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from tallybook.expressions.functions.arithmetic import quotient
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    DAY_OR_TIME,
    EVERY_ARGUMENT,
    TEXT,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    always,
    params,
    register,
)
from tallybook.expressions.values import day_of, last_day_of_month, rounded
from tallybook.expressions.values import quotient as quotient_of
from tallybook.model.columns import INTEGER, INTEGER_AS_DECIMAL, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

FRACTION = decimal(18, 12)
"""The type of YEARFRAC. All its quotients have divisors of at most six digits, so rounding them twice is harmless."""
_END, _START = Param("the end", DAY_OR_TIME), Param("the start", DAY_OR_TIME)


def _months(_c: Building, end: Column, start: Column) -> Column:
    """Counts from the earlier to the later date, so that exchanging them changes only the sign."""
    end, start = end.cast("date"), start.cast("date")
    first, last = F.least(start, end), F.greatest(start, end)
    months = (F.year(last) - F.year(first)) * 12 + F.month(last) - F.month(first)
    incomplete = (F.day(last) < F.day(first)) & (last != F.last_day(last))
    whole = (months - F.when(incomplete, 1).otherwise(0)).cast("bigint")
    return F.when(end < start, -whole).when(end >= start, whole)


def _compute_months(_c: Computing, end: date, start: date) -> int:
    first, last = sorted((day_of(start), day_of(end)))
    months = (last.year - first.year) * 12 + last.month - first.month
    incomplete = last.day < first.day and last != last_day_of_month(last)
    return (months - incomplete) * (-1 if day_of(end) < day_of(start) else 1)


Fraction = tuple["Column", "Column"]
"""A whole numerator and its divisor."""


def _actual(divisor: int) -> Callable[[Column, Column], Fraction]:
    return lambda start, end: (F.datediff(end, start).cast("bigint"), F.lit(divisor))


def _thirty(start: Column, end: Column) -> Fraction:
    """Months of 30 days: the 31st counts as the 30th, at the end only if the start is the 30th or 31st."""
    first, last = F.least(start, end), F.greatest(start, end)
    from_day = F.least(F.day(first), F.lit(30))
    to_day = F.when(from_day == 30, F.least(F.day(last), F.lit(30))).otherwise(F.day(last))
    days = (F.year(last) - F.year(first)) * 360 + (F.month(last) - F.month(first)) * 30 + to_day - from_day
    return F.when(end < start, -days).when(end >= start, days).cast("bigint"), F.lit(360)


def _year_length(day: Column) -> Column:
    return F.dayofyear(F.make_date(F.year(day), F.lit(12), F.lit(31))).cast("bigint")


def _each_year(start: Column, end: Column) -> Fraction:
    """The part of each year by the length of that year, over the product of the two lengths that matter."""
    length, last_length = _year_length(start), _year_length(end)
    years = (F.year(end) - F.year(start)) * length * last_length
    days = (F.dayofyear(end) - 1) * length - (F.dayofyear(start) - 1) * last_length
    return years + days, length * last_length


_BASES: dict[str, Callable[[Column, Column], Fraction]] = {
    "30/360": _thirty,
    "act/360": _actual(360),
    "act/365": _actual(365),
    "act/act": _each_year,
}


def _basis(args: Sequence[Argument]) -> str:
    return str(args[2].literal).lower()


def _refuse_basis(args: Sequence[Argument]) -> Refusal | None:
    if _basis(args) in _BASES:
        return None
    choices = ", ".join(f'"{basis}"' for basis in _BASES)
    return Refusal(f"'{args[2].literal}' is not a basis of YEARFRAC", f"write one of: {choices}")


def _year_fraction(c: Building, start: Column, end: Column, _basis_column: Column) -> Column:
    days, divisor = _BASES[_basis(c.args)](start.cast("date"), end.cast("date"))
    exact = quotient(c, c.cast(days, INTEGER_AS_DECIMAL), divisor, INTEGER_AS_DECIMAL)
    return c.cast(exact, FRACTION)


def _compute_year_fraction(c: Computing, start: date, end: date, _basis_text: str) -> object:
    first, last = day_of(start), day_of(end)
    basis = _basis(c.args)
    if basis == "30/360":
        sign = -1 if last < first else 1
        first, last = sorted((first, last))
        from_day = min(first.day, 30)
        to_day = min(last.day, 30) if from_day == 30 else last.day
        days = (last.year - first.year) * 360 + (last.month - first.month) * 30 + to_day - from_day
        return rounded(quotient_of(sign * days, 360), FRACTION)
    if basis == "act/act":
        length, last_length = _days_in_year(first), _days_in_year(last)
        years = (last.year - first.year) * length * last_length
        days = _day_of_year(last) * length - _day_of_year(first) * last_length
        return rounded(quotient_of(years + days, length * last_length), FRACTION)
    return rounded(quotient_of((last - first).days, int(basis.removeprefix("act/"))), FRACTION)


def _day_of_year(day: date) -> int:
    return (day - day.replace(month=1, day=1)).days


def _days_in_year(day: date) -> int:
    return _day_of_year(day.replace(month=12, day=31)) + 1


register(
    Function(
        "MONTHS_BETWEEN",
        "dates",
        params(_END, _START),
        "MONTHS_BETWEEN(end, start)",
        always(INTEGER),
        "The whole months from start to end: the most that ADD_MONTHS can add to the start without passing the end. "
        "Negative when the end is before the start.",
        ('MONTHS_BETWEEN(DATE("2026-02-28"), DATE("2025-12-31"))', "2"),
        _months,
        compute=_compute_months,
        repeats_often=EVERY_ARGUMENT,
    )
)
register(
    Function(
        "YEARFRAC",
        "dates",
        params(_START, _END, Param("the basis", TEXT, literal=True)),
        'YEARFRAC(start, end, "act/365")',
        always(FRACTION),
        'The years from start to end, rounded half up to 12 digits. The basis is "30/360" (bond basis), "act/360", '
        '"act/365" or "act/act" (the part of each year by its own length). Negative when the end is before the start.',
        ('YEARFRAC(DATE("2026-01-01"), DATE("2026-07-01"), "30/360")', "0.500000000000"),
        _year_fraction,
        compute=_compute_year_fraction,
        refuse=_refuse_basis,
        repeats_often=(0, 1),
    )
)
