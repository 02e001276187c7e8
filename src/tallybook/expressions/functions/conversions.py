"""Conversions. They are always explicit, and a value that cannot be converted fails the run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from tallybook.expressions.functions.dates import read_date
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    ANYTHING,
    WHOLE,
    Accepts,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
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
ISO_DATE = "yyyy-MM-dd"


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


def _to_date(c: Building, x: Column) -> Column:
    """Spark's pattern also takes year 0, signed and longer years; such text is put out of its reach."""
    if c.args[0].type != STRING:
        return x.cast("date")
    quoted = F.concat(F.lit("'"), x, F.lit("'"))
    has_year = (F.char_length(x) == len("2026-01-31")) & ~x.startswith("0000")
    return F.to_date(F.when(has_year, x).otherwise(quoted), ISO_DATE)


def _compute_date(_c: Computing, value: str | date) -> date:
    if isinstance(value, date):
        return day_of(value)
    written = read_date(value)
    if written is None:
        raise ValueError(f"'{value}' is not a date written as 2026-01-31")
    return written


def _compute_integer(_c: Computing, value: str | int | Decimal) -> int:
    return integer_from_text(value) if isinstance(value, str) else whole(value)


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
        _decimal_type,
        "A decimal(18,6), or one of the given precision and scale, rounded half up; spaces around text are ignored.",
        ('TO_DECIMAL("1.005", 10, 2)', "1.01"),
        lambda c, x, *_digits: c.cast(x, c.result),
        compute=_compute_decimal,
        refuse=_refuse_decimal_type,
    )
)
register(
    Function(
        "TO_DATE",
        "conversions",
        params(Param("the value", _DATED)),
        "TO_DATE(value)",
        always(DATE),
        "A date from text written exactly as 2026-01-31, or the day (UTC) of a timestamp.",
        ('TO_DATE("2026-01-31")', "2026-01-31"),
        _to_date,
        compute=_compute_date,
        repeats=(0,),
    )
)
