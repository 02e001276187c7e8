"""The operators + - * / %: exact arithmetic with decimals and 64-bit integers, never floats.

Overflow fails, division by zero is NULL. A date plus or minus a number of days is a date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tallybook.expressions import decimals
from tallybook.expressions.functions.dates import on_day
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    NUMBER,
    Accepts,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    ResultType,
    params,
    register,
)
from tallybook.expressions.values import EXACT, cast, days_later
from tallybook.expressions.values import quotient as quotient_of
from tallybook.model.columns import DATE, INTEGER, MAX_PRECISION, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

TypeRule = Callable[[ColumnType, ColumnType], ColumnType]
_ADDABLE = Accepts("a number or date", frozenset({"integer", "decimal", "date"}), INTEGER)


def arithmetic(rule: TypeRule, words: str = "integer for integers, else decimal") -> ResultType:
    """Integers stay integers; with a decimal among them the rule gives the digits."""

    def result(args: Sequence[Argument]) -> ColumnType:
        if DATE in (args[0].type, args[1].type):
            return DATE
        if args[0].type == args[1].type == INTEGER:
            return INTEGER
        return rule(args[0].widened, args[1].widened)

    return ResultType(words, result)


def _divided(args: Sequence[Argument]) -> ColumnType:
    return decimals.divided(args[0].widened, args[1].widened)


def _operands(c: Building, *columns: Column) -> list[Column]:
    """Both as decimals where the result is one."""
    if c.result.kind != "decimal":
        return list(columns)
    return [as_decimal(c, column, arg) for column, arg in zip(columns, c.args, strict=True)]


def as_decimal(c: Building, column: Column, arg: Argument) -> Column:
    """The column as a decimal, if it is an integer."""
    return c.cast(column, arg.widened) if arg.type == INTEGER else column


def _plus(c: Building, x: Column, y: Column) -> Column:
    if c.result == DATE:
        day, days = (x, y) if c.args[0].type == DATE else (y, x)
        return on_day(F.unix_date(day).cast("bigint") + days)
    left, right = _operands(c, x, y)
    return left + right


def _minus(c: Building, x: Column, y: Column) -> Column:
    if c.result == DATE:
        return on_day(F.unix_date(x).cast("bigint") - y)
    left, right = _operands(c, x, y)
    return left - right


def _times(c: Building, x: Column, y: Column) -> Column:
    left, right = _operands(c, x, y)
    return left * right


def _compute_plus(c: Computing, x: Any, y: Any) -> object:
    if c.result == DATE:
        return days_later(x, y) if c.args[0].type == DATE else days_later(y, x)
    return cast(EXACT.add(Decimal(x), Decimal(y)), c.result)


def _compute_minus(c: Computing, x: Any, y: Any) -> object:
    return days_later(x, -y) if c.result == DATE else cast(EXACT.subtract(Decimal(x), Decimal(y)), c.result)


def compute_remainder(c: Computing, x: Any, y: Any) -> object:
    """The remainder of plain numbers; None when dividing by zero."""
    return cast(EXACT.remainder(Decimal(x), Decimal(y)), c.result) if y else None


def quotient(c: Building, x: Column, y: Column, divisor: ColumnType) -> Column:
    """Spark gives a quotient more digits the more its divisor may have, so the divisor gets all 38."""
    wide = c.cast(y, decimal(MAX_PRECISION, divisor.scale))
    return x / F.nullif(wide, c.cast(F.lit(0), decimal(MAX_PRECISION, divisor.scale)))


def _by(c: Building, x: Column, y: Column) -> Column:
    return quotient(c, as_decimal(c, x, c.args[0]), y, c.args[1].widened)


def remainder(c: Building, x: Column, y: Column) -> Column:
    """The remainder, with the sign of the left; NULL when dividing by zero."""
    left, right = _operands(c, x, y)
    if c.result == INTEGER:
        return left % F.nullif(right, c.cast(F.lit(0), c.args[1].type))
    number, divisor = (arg.widened for arg in c.args)
    right = F.nullif(right, c.cast(F.lit(0), divisor))
    if number.integer_digits + divisor.scale <= MAX_PRECISION:
        return left % right
    return left % _without_point(c, right, divisor) % right


def _without_point(c: Building, x: Column, type: ColumnType) -> Column:
    """All digits of a decimal as a whole number.

    Spark's remainder fails where the quotient has more digits than a decimal. It is the same after the remainder of a
    multiple of the divisor was taken, and with this multiple both quotients have fewer.
    """
    return c.cast(F.translate(x.cast("string"), ".", ""), decimal(type.precision, 0))


_WHOLE_DAYS = Refusal("the number of days must be whole", "round it to an integer with ROUND(…)")


def _refuse_dates_added(args: Sequence[Argument]) -> Refusal | None:
    kinds = [arg.type.kind for arg in args]
    if kinds.count("date") == 2:
        return Refusal("two dates cannot be added", "add a number of days, as in date + 30")
    return _WHOLE_DAYS if "date" in kinds and "decimal" in kinds else None


def _refuse_dates_subtracted(args: Sequence[Argument]) -> Refusal | None:
    kinds = [arg.type.kind for arg in args]
    if kinds == ["date", "date"]:
        return Refusal("two dates cannot be subtracted", "for the days between them, write DATEDIFF(end, start)")
    if kinds[1] == "date":
        return Refusal("a date cannot be subtracted from a number", "write date - days, or DATEDIFF(end, start)")
    return _WHOLE_DAYS if kinds == ["date", "decimal"] else None


def _infix(
    name: str,
    accepts: Accepts,
    result: ResultType,
    summary: str,
    example: tuple[str, str],
    build: Callable[..., Column],
    compute: Callable[..., object],
    refuse: Callable[[Sequence[Argument]], Refusal | None] = lambda _: None,
    repeats: tuple[int, ...] = (),
) -> None:
    register(
        Function(
            name,
            "numbers",
            params(Param("the left side", accepts), Param("the right side", accepts)),
            f"a {name} b",
            result,
            summary,
            example,
            build,
            compute=compute,
            operator=True,
            refuse=refuse,
            repeats=repeats,
            moves_dates=accepts is _ADDABLE,
        )
    )


_infix(
    "+",
    _ADDABLE,
    arithmetic(decimals.added, "integer for integers, date for a date, else decimal"),
    "The sum; a date plus a number of days is a date.",
    ("1.5 + 2", "3.5"),
    _plus,
    _compute_plus,
    _refuse_dates_added,
)
_infix(
    "-",
    _ADDABLE,
    arithmetic(decimals.added, "integer for integers, date for a date, else decimal"),
    "The difference; a date minus a number of days is a date.",
    ("5 - 7", "-2"),
    _minus,
    _compute_minus,
    _refuse_dates_subtracted,
)
_infix(
    "*",
    NUMBER,
    arithmetic(decimals.multiplied),
    "The product.",
    ("1.10 * 3", "3.30"),
    _times,
    lambda c, x, y: cast(EXACT.multiply(Decimal(x), Decimal(y)), c.result),
)
_infix(
    "/",
    NUMBER,
    ResultType("decimal", _divided),
    "The quotient, a decimal; NULL when dividing by zero.",
    ("1 / 4", "0.25"),
    _by,
    lambda c, x, y: cast(quotient_of(x, y), c.result) if y else None,
    repeats=(1,),
)
_infix(
    "%",
    NUMBER,
    arithmetic(decimals.remainder),
    "The remainder, with the sign of the left; NULL when dividing by zero.",
    ("-7 % 3", "-1"),
    remainder,
    compute_remainder,
    repeats=(1,),
)
