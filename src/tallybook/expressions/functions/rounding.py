"""Rounding to a number of digits that is written in the expression, because the digits decide the type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any

from tallybook.expressions import decimals
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    NUMBER,
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
)
from tallybook.expressions.values import EXACT, cast, to_integer
from tallybook.model.columns import INTEGER, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_ROUND_DIGITS = 38


def _digits(args: Sequence[Argument]) -> int:
    return int(str(args[1].literal)) if len(args) > 1 else 0


def _rounded(args: Sequence[Argument]) -> ColumnType:
    type, digits = args[0].type, _digits(args)
    if digits <= 0 or type == INTEGER:
        return INTEGER
    return type if digits >= type.scale else decimals.fitted(type.integer_digits + 1, digits)


def _half_up(x: Column, digits: int) -> Column:
    return F.round(x, digits)


def _half_even(x: Column, digits: int) -> Column:
    return F.bround(x, digits)


def _toward_zero(x: Column, digits: int) -> Column:
    return F.when(x < 0, F.ceil(x, F.lit(digits))).otherwise(F.floor(x, F.lit(digits)))


def _away_from_zero(x: Column, digits: int) -> Column:
    return F.when(x < 0, F.floor(x, F.lit(digits))).otherwise(F.ceil(x, F.lit(digits)))


def _rounding(
    name: str,
    summary: str,
    example: tuple[str, str],
    on_spark: Callable[[Column, int], Column],
    mode: str,
    repeats: tuple[int, ...] = (),
) -> None:
    """Registers a function that rounds to digits, in one of Python's rounding modes."""

    def build(c: Building, x: Column, _digits_column: Column | None = None) -> Column:
        digits, type = _digits(c.args), c.args[0].type
        keeps_all = digits >= (0 if type == INTEGER else type.scale)
        return x if keeps_all and c.result == type else c.cast(on_spark(x, digits), c.result)

    def compute(c: Computing, x: Any, digits: int = 0) -> object:
        return cast(Decimal(x).quantize(Decimal(1).scaleb(-digits), mode, EXACT), c.result)

    def refuse(args: Sequence[Argument]) -> Refusal | None:
        too_many = abs(_digits(args)) > MAX_ROUND_DIGITS
        return Refusal(f"{name} takes at most {MAX_ROUND_DIGITS} digits") if too_many else None

    register(
        Function(
            name,
            "numbers",
            params(Param("the number", NUMBER), optional=[Param("the number of digits", WHOLE, literal=True)]),
            f"{name}(number, digits)",
            ResultType("decimal; integer without digits, or with 0 or fewer", _rounded),
            summary,
            example,
            build,
            compute=compute,
            refuse=refuse,
            repeats=repeats,
        )
    )


_rounding(
    "ROUND",
    "The number rounded half up, away from zero. Without digits, or with 0 or fewer, it is an integer.",
    ("ROUND(2.345, 2)", "2.35"),
    _half_up,
    ROUND_HALF_UP,
)
_rounding(
    "ROUND_HALF_EVEN",
    "The number rounded; a half goes to the even neighbour.",
    ("ROUND_HALF_EVEN(2.345, 2)", "2.34"),
    _half_even,
    ROUND_HALF_EVEN,
)
_rounding(
    "ROUNDUP",
    "The number rounded away from zero.",
    ("ROUNDUP(-2.341, 2)", "-2.35"),
    _away_from_zero,
    ROUND_UP,
    repeats=(0,),
)
for _name in ("ROUNDDOWN", "TRUNC"):
    _rounding(
        _name,
        "The number rounded towards zero: further digits are cut off.",
        (f"{_name}(-2.349, 2)", "-2.34"),
        _toward_zero,
        ROUND_DOWN,
        repeats=(0,),
    )
for _name, _mode, _meaning, _example in (
    ("FLOOR", ROUND_FLOOR, "The largest integer that is not above the number.", ("FLOOR(-1.5)", "-2")),
    ("CEIL", ROUND_CEILING, "The smallest integer that is not below the number.", ("CEIL(1.2)", "2")),
):
    register(
        Function(
            _name,
            "numbers",
            params(Param("the number", NUMBER)),
            f"{_name}(number)",
            always(INTEGER),
            _meaning,
            _example,
            lambda c, x, name=_name: c.cast(getattr(F, name.lower())(x), INTEGER),
            compute=lambda _c, x, mode=_mode: to_integer(x, mode),
        )
    )
