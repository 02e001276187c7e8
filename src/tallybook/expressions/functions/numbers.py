"""Exact arithmetic: decimals and 64-bit integers, never floats. Overflow fails, division by zero is NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from operator import and_
from typing import TYPE_CHECKING, Any

from tallybook.expressions import decimals
from tallybook.expressions.functions.dates import on_day
from tallybook.expressions.functions.spark import F, balanced
from tallybook.expressions.registry import (
    EVERY_ARGUMENT,
    NUMBER,
    ORDERED,
    WHOLE,
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
    same_as,
)
from tallybook.expressions.values import EXACT, cast, days_later, to_integer
from tallybook.expressions.values import quotient as quotient_of
from tallybook.model.columns import DATE, INTEGER, MAX_PRECISION, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

TypeRule = Callable[[ColumnType, ColumnType], ColumnType]
_ADDABLE = Accepts("a number or date", frozenset({"integer", "decimal", "date"}), INTEGER)
MAX_ROUND_DIGITS = 38


def _arithmetic(rule: TypeRule) -> Callable[[Sequence[Argument]], ColumnType]:
    """Integers stay integers; with a decimal among them the rule gives the digits."""

    def result(args: Sequence[Argument]) -> ColumnType:
        if DATE in (args[0].type, args[1].type):
            return DATE
        if args[0].type == args[1].type == INTEGER:
            return INTEGER
        return rule(args[0].widened, args[1].widened)

    return result


def _divided(args: Sequence[Argument]) -> ColumnType:
    return decimals.divided(args[0].widened, args[1].widened)


def _operands(c: Building, *columns: Column) -> list[Column]:
    """Both as decimals where the result is one."""
    if c.result.kind != "decimal":
        return list(columns)
    return [as_decimal(c, column, arg) for column, arg in zip(columns, c.args, strict=True)]


def as_decimal(c: Building, column: Column, arg: Argument) -> Column:
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


def _compute_remainder(c: Computing, x: Any, y: Any) -> object:
    return cast(EXACT.remainder(Decimal(x), Decimal(y)), c.result) if y else None


def quotient(c: Building, x: Column, y: Column, divisor: ColumnType) -> Column:
    """Spark gives a quotient more digits the more its divisor may have, so the divisor gets all 38."""
    wide = c.cast(y, decimal(MAX_PRECISION, divisor.scale))
    return x / F.nullif(wide, c.cast(F.lit(0), decimal(MAX_PRECISION, divisor.scale)))


def _by(c: Building, x: Column, y: Column) -> Column:
    return quotient(c, as_decimal(c, x, c.args[0]), y, c.args[1].widened)


def _remainder(c: Building, x: Column, y: Column) -> Column:
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


def _digits(args: Sequence[Argument]) -> int:
    return int(str(args[1].literal)) if len(args) > 1 else 0


def _rounded(args: Sequence[Argument]) -> ColumnType:
    type, digits = args[0].type, _digits(args)
    if digits <= 0 or type == INTEGER:
        return INTEGER
    return type if digits >= type.scale else decimals.fitted(type.integer_digits + 1, digits)


def _refuse_digits(args: Sequence[Argument]) -> Refusal | None:
    too_many = abs(_digits(args)) > MAX_ROUND_DIGITS
    return Refusal(f"ROUND takes at most {MAX_ROUND_DIGITS} digits") if too_many else None


def _round(c: Building, x: Column, _digits_column: Column | None = None) -> Column:
    digits = _digits(c.args)
    return x if c.args[0].type == INTEGER and digits >= 0 else c.cast(F.round(x, digits), c.result)


def _compute_round(c: Computing, x: Any, digits: int = 0) -> object:
    return cast(Decimal(x).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT), c.result)


def _extreme(pick: str) -> Callable[..., Column]:
    """Spark's least and greatest pass over NULLs; ours are NULL when one argument is."""

    def build(c: Building, *values: Column) -> Column:
        if len(values) == 1:
            return values[0]
        known = balanced(and_, [value.isNotNull() for value in values])
        return F.when(known, getattr(F, pick)(*values))

    return build


def _compute_extreme(pick: Callable[..., object]) -> Callable[..., object]:
    return lambda _c, *values: pick(values)


_EXACT_MINUS = 34
"""Digits up to which Spark's own minus is exact."""


def _negated(c: Building, x: Column) -> Column:
    """Spark's own minus keeps 34 digits of a decimal; of longer ones the sign is changed in their text."""
    if not _is_long(c):
        return -x
    return c.cast(F.regexp_replace(F.concat(F.lit("-"), x.cast("string")), "^--", ""), c.result)


def _absolute(c: Building, x: Column) -> Column:
    return c.cast(F.ltrim(x.cast("string"), F.lit("-")), c.result) if _is_long(c) else F.abs(x)


def _is_long(c: Building) -> bool:
    return c.result.kind == "decimal" and c.result.precision > _EXACT_MINUS


def _infix(
    name: str,
    accepts: Accepts,
    result: Callable[[Sequence[Argument]], ColumnType],
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
    _arithmetic(decimals.added),
    "The sum; a date plus a number of days is a date.",
    ("1.5 + 2", "3.5"),
    _plus,
    _compute_plus,
    _refuse_dates_added,
)
_infix(
    "-",
    _ADDABLE,
    _arithmetic(decimals.added),
    "The difference; a date minus a number of days is a date.",
    ("5 - 7", "-2"),
    _minus,
    _compute_minus,
    _refuse_dates_subtracted,
)
_infix(
    "*",
    NUMBER,
    _arithmetic(decimals.multiplied),
    "The product.",
    ("1.10 * 3", "3.30"),
    _times,
    lambda c, x, y: cast(EXACT.multiply(Decimal(x), Decimal(y)), c.result),
)
_infix(
    "/",
    NUMBER,
    _divided,
    "The quotient, a decimal; NULL when dividing by zero.",
    ("1 / 4", "0.25"),
    _by,
    lambda c, x, y: cast(quotient_of(x, y), c.result) if y else None,
    repeats=(1,),
)
_infix(
    "%",
    NUMBER,
    _arithmetic(decimals.remainder),
    "The remainder, with the sign of the left; NULL when dividing by zero.",
    ("-7 % 3", "-1"),
    _remainder,
    _compute_remainder,
    repeats=(1,),
)
register(
    Function(
        "NEGATE",
        "numbers",
        params(Param("the number", NUMBER)),
        "-number",
        same_as(0),
        "The number with its sign changed.",
        ("-(2 + 3)", "-5"),
        _negated,
        compute=lambda c, x: cast(EXACT.minus(Decimal(x)), c.result),
        operator=True,
    )
)
register(
    Function(
        "ABS",
        "numbers",
        params(Param("the number", NUMBER)),
        "ABS(number)",
        same_as(0),
        "The number without its sign.",
        ("ABS(-2.5)", "2.5"),
        _absolute,
        compute=lambda c, x: cast(EXACT.abs(Decimal(x)), c.result),
    )
)
register(
    Function(
        "ROUND",
        "numbers",
        params(Param("the number", NUMBER), optional=[Param("the number of digits", WHOLE, literal=True)]),
        "ROUND(number, digits)",
        _rounded,
        "The number rounded half up, away from zero. Without digits, or with 0 or fewer, it is an integer.",
        ("ROUND(2.345, 2)", "2.35"),
        _round,
        compute=_compute_round,
        refuse=_refuse_digits,
    )
)
register(
    Function(
        "FLOOR",
        "numbers",
        params(Param("the number", NUMBER)),
        "FLOOR(number)",
        always(INTEGER),
        "The largest integer that is not above the number.",
        ("FLOOR(-1.5)", "-2"),
        lambda c, x: c.cast(F.floor(x), INTEGER),
        compute=lambda _c, x: to_integer(x, ROUND_FLOOR),
    )
)
register(
    Function(
        "CEIL",
        "numbers",
        params(Param("the number", NUMBER)),
        "CEIL(number)",
        always(INTEGER),
        "The smallest integer that is not below the number.",
        ("CEIL(1.2)", "2"),
        lambda c, x: c.cast(F.ceil(x), INTEGER),
        compute=lambda _c, x: to_integer(x, ROUND_CEILING),
    )
)
register(
    Function(
        "MOD",
        "numbers",
        params(Param("the number", NUMBER), Param("the divisor", NUMBER)),
        "MOD(number, divisor)",
        _arithmetic(decimals.remainder),
        "The remainder, with the sign of the number; NULL when dividing by zero.",
        ("MOD(7, 3)", "1"),
        _remainder,
        compute=_compute_remainder,
        repeats=(1,),
    )
)
for _name, _pick, _pick_value, _meaning, _example in (
    (
        "MIN",
        "least",
        min,
        "The smallest of the values in this row; NULL when one of them is NULL.",
        ("MIN(3, 1.5)", "1.5"),
    ),
    (
        "MAX",
        "greatest",
        max,
        "The largest of the values in this row; NULL when one of them is NULL.",
        ("MAX(3, 1.5)", "3.0"),
    ),
):
    register(
        Function(
            _name,
            "numbers",
            params(Param("a value", ORDERED, group="value"), repeat=Param("a value", ORDERED, group="value")),
            f"{_name}(value, …)",
            same_as(0),
            _meaning,
            _example,
            _extreme(_pick),
            compute=_compute_extreme(_pick_value),
            repeats=EVERY_ARGUMENT,
        )
    )
