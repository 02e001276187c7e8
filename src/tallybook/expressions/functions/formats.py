"""TEXT: numbers and dates as text in a form that a pattern describes. A bare NULL counts as a string."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, NamedTuple

from tallybook.expressions.functions.date_patterns import date_pattern, refused_pattern
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    TEXT,
    Accepts,
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
from tallybook.expressions.values import EXACT, day_of
from tallybook.model.columns import STRING

if TYPE_CHECKING:
    from pyspark.sql import Column

_FORMATTED = Accepts("a number or date", frozenset({"integer", "decimal", "date", "timestamp"}), STRING)
_NUMBER_PATTERN = re.compile(r"(#,##0|0{1,38})(?:\.(0{0,18})(#{0,18}))?(%?)")
_NUMBER_HINT = 'write "0.00", "#,##0.00" with thousands separators, "00000" with leading zeros, "0.##" or "0.0%"'


class NumberPattern(NamedTuple):
    """A pattern of numbers, such as #,##0.00."""

    grouped: bool
    whole_digits: int
    kept: int
    """Fractional digits that are always written."""
    optional: int
    """Fractional digits after those that are written unless they are zeros at the end."""
    percent: bool

    @property
    def scale(self) -> int:
        return self.kept + self.optional

    def for_java(self) -> str:
        """The pattern for Spark's `format_number`."""
        whole = "#,##0" if self.grouped else "0" * self.whole_digits
        fraction = "." + "0" * self.kept + "#" * self.optional if self.scale else ""
        return whole + fraction + ("%" if self.percent else "")

    def write(self, number: int | Decimal) -> str:
        """The number in this form, rounded half up."""
        exact = Decimal(number).scaleb(2 if self.percent else 0, EXACT)
        digits = exact.quantize(Decimal(1).scaleb(-self.scale), ROUND_HALF_UP, EXACT)
        whole, _, fraction = format(digits.copy_abs(), "f").partition(".")
        whole = f"{int(whole):,}" if self.grouped else whole.zfill(self.whole_digits)
        fraction = fraction[: self.kept] + fraction[self.kept :].rstrip("0")
        sign = "-" if digits < 0 else ""
        return sign + whole + (f".{fraction}" if fraction else "") + ("%" if self.percent else "")


def number_pattern(text: str) -> NumberPattern | None:
    """Reads a pattern of numbers; None if it is not one."""
    match = _NUMBER_PATTERN.fullmatch(text)
    if match is None:
        return None
    whole, kept, optional, percent = match.groups(default="")
    return NumberPattern(whole == "#,##0", len(whole), len(kept), len(optional), bool(percent))


def _refuse(args: Sequence[Argument]) -> Refusal | None:
    pattern = str(args[1].literal)
    if args[0].type == STRING and number_pattern(pattern):
        return None
    if not args[0].type.is_number:
        return refused_pattern(pattern, reading=False)
    return None if number_pattern(pattern) else Refusal(f"'{pattern}' is not a pattern of numbers", _NUMBER_HINT)


def _text(c: Building, x: Column, _pattern_column: Column) -> Column:
    """Spark's `format_number` rounds halves to even, so the number is rounded before."""
    written = str(c.args[1].literal)
    if c.args[0].type == STRING:
        return x
    if not c.args[0].type.is_number:
        return F.date_format(x.cast("date"), date_pattern(written).for_java())
    pattern = number_pattern(written)
    assert pattern is not None
    rounded = F.round(x, pattern.scale + (2 if pattern.percent else 0))
    return F.call_function("format_number", rounded, F.lit(pattern.for_java()))


def _compute(c: Computing, value: int | Decimal | date, written: str) -> str:
    if isinstance(value, date):
        return date_pattern(written).write(day_of(value))
    pattern = number_pattern(written)
    assert pattern is not None
    return pattern.write(value)


register(
    Function(
        "TEXT",
        "conversions",
        params(Param("the value", _FORMATTED), Param("the pattern", TEXT, literal=True)),
        'TEXT(number or date, "pattern")',
        always(STRING),
        "A number or date in the form of a pattern. Numbers, rounded half up: 0.00, #,##0.00, 00000, 0.##, 0.0%. "
        "Dates: yyyy, yy, mmmm (January), mmm (Jan), mm, m, dd, d, in small or capital letters.",
        ('TEXT(1234.5, "#,##0.00")', "1,234.50"),
        _text,
        compute=_compute,
        refuse=_refuse,
    )
)
