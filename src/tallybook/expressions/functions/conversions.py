"""Conversions. They are always explicit, and a value that cannot be converted fails the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from tallybook.expressions.functions.date_patterns import DatePattern, date_pattern, refused_pattern
from tallybook.expressions.functions.raising import refusing
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    ANYTHING,
    TEXT,
    WHOLE,
    Accepts,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    ResultType,
    Shape,
    always,
    params,
    register,
)
from tallybook.expressions.values import day_of, decimal_from_text, integer_from_text, rounded, text_of, whole
from tallybook.model.columns import DATE, DECIMAL, INTEGER, STRING, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

_NUMERIC = Accepts("a string or number", frozenset({"string", "integer", "decimal"}), STRING)
_DATED = Accepts("a string, date or timestamp", frozenset({"string", "date", "timestamp"}), STRING)
_NUMBER = Param("the value", _NUMERIC)
ISO_DATE = "yyyy-mm-dd"


def _decimal_shape(count: int) -> Shape | None:
    """Returns the parameters: a value alone, or with both precision and scale."""
    digits = (Param("the precision", WHOLE, literal=True), Param("the scale", WHOLE, literal=True))
    return {1: (_NUMBER,), 3: (_NUMBER, *digits)}.get(count)


def _decimal_type(args: Sequence[Argument]) -> ColumnType:
    return decimal(int(str(args[1].literal)), int(str(args[2].literal))) if len(args) == 3 else DECIMAL


def _refuse_decimal_type(args: Sequence[Argument]) -> Refusal | None:
    try:
        _decimal_type(args)
    except ValueError as error:
        return Refusal(str(error), "write TO_DECIMAL(value, 18, 2): first all digits, then the digits after the point")
    return None


def _pattern(args: Sequence[Argument]) -> DatePattern:
    return date_pattern(str(args[1].literal) if len(args) > 1 else ISO_DATE)


def _refuse_pattern(args: Sequence[Argument]) -> Refusal | None:
    if len(args) < 2:
        return None
    if args[0].type != STRING:
        return Refusal(f"a pattern is for text, but the value is a {args[0].type}", "leave the pattern out")
    return refused_pattern(str(args[1].literal), reading=True)


def _date_or_null(c: Building, x: Column) -> Column:
    """The date of a text written as the pattern says, else NULL; of a timestamp its day."""
    if c.args[0].type != STRING:
        return x.cast("date")
    pattern = _pattern(c.args)
    regex = rf"\A{pattern.regex()}\z"
    iso = x if pattern == date_pattern(ISO_DATE) else pattern.iso_date(x)
    return F.when(F.rlike(x, F.lit(regex)) & ~iso.startswith("0000"), iso).try_cast("date")


def _to_date(c: Building, x: Column, _pattern_column: Column | None = None) -> Column:
    day = _date_or_null(c, x)
    if c.args[0].type != STRING:
        return day
    return F.when(x.isNotNull() & day.isNull(), refusing("TO_DATE", x, _not_written_as(c))).otherwise(day)


def _not_written_as(c: Computing) -> str:
    written = c.args[1].literal if len(c.args) > 1 else "2026-01-31"
    return f"is not a date written as {written}"


def _compute_date(c: Computing, value: str | date, _pattern_text: str = "") -> date:
    day = _compute_date_or_null(c, value)
    if day is None:
        raise ValueError(f"'{value}' {_not_written_as(c)}")
    return day


def _compute_date_or_null(c: Computing, value: str | date, _pattern_text: str = "") -> date | None:
    return day_of(value) if isinstance(value, date) else _pattern(c.args).read(value)


def _compute_integer(_c: Computing, value: str | int | Decimal) -> int:
    return integer_from_text(value) if isinstance(value, str) else whole(value)


def _or_null(compute: Callable[..., object]) -> Callable[..., object]:
    """The same computation, but None where the value cannot be converted."""

    def attempt(c: Computing, *values: object) -> object:
        try:
            return compute(c, *values)
        except (ValueError, ArithmeticError):
            return None

    return attempt


def _compute_decimal(c: Computing, value: str | int | Decimal, *_digits: int) -> Decimal:
    return rounded(decimal_from_text(value) if isinstance(value, str) else value, c.result)


register(
    Function(
        "TO_STRING",
        "conversions",
        params(Param("the value", ANYTHING)),
        "TO_STRING(value)",
        always(STRING),
        "The value as text: decimals with all their digits, dates as 2026-01-31, timestamps as 2026-01-31 12:00:00.",
        ("TO_STRING(1.50)", "1.50"),
        lambda _c, x: x.cast("string"),
        compute=lambda _c, x: text_of(x),
    )
)
register(
    Function(
        "TO_INTEGER",
        "conversions",
        params(_NUMBER),
        "TO_INTEGER(value)",
        always(INTEGER),
        "An integer from text, ignoring spaces around it, or from a decimal, without its fraction.",
        ('TO_INTEGER("42")', "42"),
        lambda _c, x: x.cast("bigint"),
        compute=_compute_integer,
    )
)
register(
    Function(
        "TO_DECIMAL",
        "conversions",
        _decimal_shape,
        "TO_DECIMAL(value), or TO_DECIMAL(value, precision, scale)",
        ResultType("decimal(18,6), or the one given", _decimal_type),
        "A decimal(18,6), or one of the given precision and scale, rounded half up; spaces around text are ignored.",
        ('TO_DECIMAL("1.005", 10, 2)', "1.01"),
        lambda c, x, *_digits: c.cast(x, c.result),
        compute=_compute_decimal,
        refuse=_refuse_decimal_type,
    )
)
_PATTERN = Param("the pattern", TEXT, literal=True)
register(
    Function(
        "TO_DATE",
        "conversions",
        params(Param("the value", _DATED), optional=[_PATTERN]),
        'TO_DATE(value), or TO_DATE(text, "dd.mm.yyyy")',
        always(DATE),
        "A date from text written exactly as 2026-01-31, or as the pattern says, or the day (UTC) of a timestamp. "
        "A pattern has yyyy or yy (20yy), mm, m, mmm (Jan) or mmmm (January), and dd or d, else the 1st.",
        ('TO_DATE("31.01.2026", "dd.mm.yyyy")', "2026-01-31"),
        _to_date,
        compute=_compute_date,
        repeats_often=(0,),
        refuse=_refuse_pattern,
    )
)
register(
    Function(
        "TRY_TO_INTEGER",
        "conversions",
        params(_NUMBER),
        "TRY_TO_INTEGER(value)",
        always(INTEGER),
        "Like TO_INTEGER, but NULL where that would fail.",
        ('TRY_TO_INTEGER("42x")', "NULL"),
        lambda _c, x: x.try_cast("bigint"),
        compute=_or_null(_compute_integer),
    )
)
register(
    Function(
        "TRY_TO_DECIMAL",
        "conversions",
        _decimal_shape,
        "TRY_TO_DECIMAL(value), or TRY_TO_DECIMAL(value, precision, scale)",
        ResultType("decimal(18,6), or the one given", _decimal_type),
        "Like TO_DECIMAL, but NULL where that would fail.",
        ('TRY_TO_DECIMAL("n/a")', "NULL"),
        lambda c, x, *_digits: x.try_cast(f"decimal({c.result.precision},{c.result.scale})"),
        compute=_or_null(_compute_decimal),
        refuse=_refuse_decimal_type,
    )
)
register(
    Function(
        "TRY_TO_DATE",
        "conversions",
        params(Param("the value", _DATED), optional=[_PATTERN]),
        'TRY_TO_DATE(value), or TRY_TO_DATE(text, "dd.mm.yyyy")',
        always(DATE),
        "Like TO_DATE, but NULL where that would fail.",
        ('TRY_TO_DATE("31.02.2026", "dd.mm.yyyy")', "NULL"),
        lambda c, x, *_pattern_column: _date_or_null(c, x),
        compute=_compute_date_or_null,
        repeats_often=(0,),
        refuse=_refuse_pattern,
    )
)
