"""Comparisons. Numbers by value, text by code point, dates as timestamps at midnight; never text with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from operator import eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any

from tallybook.expressions.decimals import exact_common
from tallybook.expressions.functions.choices import LONG, among
from tallybook.expressions.functions.like import MAX_GAPS, fits, fits_column, fits_text, gaps, is_pattern
from tallybook.expressions.functions.spark import F, balanced
from tallybook.expressions.registry import (
    ANYTHING,
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
from tallybook.expressions.values import Value, all_of, any_of, moment_of
from tallybook.model.columns import BOOLEAN, MAX_PRECISION, NULL, TIMESTAMP, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

Operand = tuple["Column", Argument]
_ORDERING = ("<", "<=", ">", ">=")
_SPARK: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_PLAIN: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def why_not_comparable(operator: str, a: Argument, b: Argument) -> Refusal | None:
    """The reason two values cannot be compared."""
    if NULL in (a.type, b.type):
        return None
    kinds = {a.type.kind, b.type.kind}
    if kinds == {"boolean"} and operator in _ORDERING:
        return Refusal(f"true and false have no order, so '{operator}' cannot compare them")
    if len(kinds) == 1 or kinds <= {"integer", "decimal"} or kinds == {"date", "timestamp"}:
        return None
    hint = None
    if "string" in kinds and kinds & {"date", "timestamp"}:
        hint = 'write dates as DATE("2026-01-31"), or convert with TO_DATE(…)'
    elif "string" in kinds and kinds & {"integer", "decimal"}:
        hint = "write numbers without quotes, text with quotes; convert text with TO_INTEGER(…) or TO_DECIMAL(…)"
    return Refusal(f"{a.type} and {b.type} cannot be compared", hint)


def _holding(args: Sequence[Argument]) -> ColumnType | None:
    """The type that holds every value of comparable arguments exactly; None when 38 digits are too few for that."""
    present = [arg for arg in args if arg.type != NULL]
    kinds = {arg.type.kind for arg in present}
    if kinds == {"date", "timestamp"}:
        return TIMESTAMP
    if "decimal" not in kinds:
        return present[0].type if present else NULL
    type: ColumnType | None = present[0].widened
    for arg in present[1:]:
        type = type and exact_common(type, arg.widened)
    return type


def compare(c: Building, operator: str, a: Operand, b: Operand) -> Column:
    """The comparison at a type that holds both values exactly."""
    type = _holding([a[1], b[1]])
    if type is None:
        return _compare_in_parts(c, operator, a, b)
    return _SPARK[operator](_as(c, type, a), _as(c, type, b))


def _as(c: Building, type: ColumnType, operand: Operand) -> Column:
    return operand[0] if operand[1].type == type else c.cast(operand[0], type)


def _compare_in_parts(c: Building, operator: str, a: Operand, b: Operand) -> Column:
    """Whole parts first, fractions where those are equal: no single decimal could hold both numbers exactly."""

    def parts(operand: Operand) -> tuple[Column, Column]:
        value = c.cast(operand[0], operand[1].widened)
        whole = F.when(value < 0, F.ceil(value)).otherwise(F.floor(value))
        fraction = value % c.cast(F.lit(1), decimal(1, 0))
        return c.cast(whole, decimal(MAX_PRECISION, 0)), c.cast(fraction, decimal(MAX_PRECISION, MAX_PRECISION))

    (x_whole, x_fraction), (y_whole, y_fraction) = parts(a), parts(b)
    same_whole = x_whole == y_whole
    if operator in ("=", "<>"):
        equality = same_whole & (x_fraction == y_fraction)
        return equality if operator == "=" else ~equality
    return (x_whole != y_whole) & _SPARK[operator[0]](x_whole, y_whole) | same_whole & _SPARK[operator](
        x_fraction, y_fraction
    )


def _comparison(operator: str) -> Callable[..., Column]:
    return lambda c, x, y: compare(c, operator, (x, c.args[0]), (y, c.args[1]))


def compare_values(operator: str, x: Any, y: Any) -> bool | None:
    """The comparison of two plain values; None when one is NULL."""
    if x is None or y is None:
        return None
    both = (moment_of(x), moment_of(y)) if isinstance(x, date) else (x, y)
    return _PLAIN[operator](*both)


def _compute_comparison(operator: str) -> Callable[..., bool | None]:
    return lambda _c, x, y: compare_values(operator, x, y)


def _in(c: Building, subject: Column, *choices: Callable[[], Column]) -> Column:
    """A table of the literals where there are many, and for the other choices Spark's IN."""
    listed = list(zip(choices, c.args[1:], strict=True))
    literals = [argument.literal for argument in c.args[1:] if argument.literal is not None]
    if len(literals) <= LONG:
        return _equals_one(c, (subject, c.args[0]), [(choice(), argument) for choice, argument in listed])
    in_literals = among(c, subject, literals)
    nulls = [pair for pair in listed if pair[1].type == NULL][:1]
    others = nulls + [pair for pair in listed if pair[1].literal is None and pair[1].type != NULL]
    if not others:
        return in_literals
    return in_literals | _equals_one(c, (subject, c.args[0]), [(choice(), argument) for choice, argument in others])


def _equals_one(c: Building, x: Operand, choices: Sequence[Operand]) -> Column:
    """Spark's own IN where one type holds every value, which keeps long lists flat."""
    type = _holding([x[1], *(argument for _, argument in choices)])
    if type is not None:
        return _as(c, type, x).isin(*(_as(c, type, choice) for choice in choices))
    return balanced(or_, [compare(c, "=", x, choice) for choice in choices])


def _compute_in(_c: Computing, subject: Value, *choices: Value) -> bool | None:
    value = subject()

    def equals(choice: Value) -> bool | None:
        return compare_values("=", value, choice())

    return any_of(partial(equals, choice) for choice in choices)


def _compute_between(_c: Computing, subject: Value, low: Value, high: Value) -> bool | None:
    value = subject()
    return all_of([lambda: compare_values(">=", value, low()), lambda: compare_values("<=", value, high())])


def _between(c: Building, subject: Column, low: Column, high: Column) -> Column:
    x = (subject, c.args[0])
    return compare(c, ">=", x, (low, c.args[1])) & compare(c, "<=", x, (high, c.args[2]))


def _refuse_each(operator: str) -> Callable[[Sequence[Argument]], Refusal | None]:
    return lambda args: next((r for arg in args[1:] if (r := why_not_comparable(operator, args[0], arg))), None)


def _like(c: Building, text: Column, pattern: Column) -> Column:
    literal = c.args[1].literal
    return fits(text, literal) if isinstance(literal, str) else fits_column(text, pattern)


def _refuse_pattern(args: Sequence[Argument]) -> Refusal | None:
    pattern = args[1].literal
    if not isinstance(pattern, str):
        return None
    if not is_pattern(pattern):
        return Refusal(
            f"'{pattern}' is not a valid pattern: a backslash must be followed by %, _ or another backslash",
            r"escape with a backslash: \% is a percent sign, \_ an underscore, \\\\ a backslash",
        )
    if gaps(pattern) > MAX_GAPS:
        return Refusal(f"a LIKE pattern can have at most {MAX_GAPS:,} %, but this one has {gaps(pattern):,}")
    return None


_MEANINGS = {
    "=": ("True when both are equal; also written ==.", '"a" = "a"'),
    "<>": ("True when they differ; also written !=.", '"a" <> "A"'),
    "<": ("True when the left comes before the right.", "1 < 2"),
    "<=": ("True when the left is not after the right.", "2 <= 2"),
    ">": ("True when the left comes after the right.", '"b" > "a"'),
    ">=": ("True when the left is not before the right.", "2.50 >= 2.5"),
}
for _operator, (_meaning, _example) in _MEANINGS.items():
    register(
        Function(
            _operator,
            "comparisons",
            params(Param("the left side", ANYTHING), Param("the right side", ANYTHING)),
            f"a {_operator} b",
            always(BOOLEAN),
            _meaning,
            (_example, "true"),
            _comparison(_operator),
            compute=_compute_comparison(_operator),
            operator=True,
            refuse=_refuse_each(_operator),
        )
    )
register(
    Function(
        "IN",
        "comparisons",
        params(Param("the value", ANYTHING), Param("a choice", ANYTHING), repeat=Param("a choice", ANYTHING)),
        "value IN (choice, …), value NOT IN (choice, …)",
        always(BOOLEAN),
        "True when the value equals one of the choices.",
        ('"b" IN ("a", "b")', "true"),
        _in,
        compute=_compute_in,
        operator=True,
        repeats=(0,),
        lazy=range(1, 2**31),
        refuse=_refuse_each("="),
        null_safe=True,
    )
)
register(
    Function(
        "BETWEEN",
        "comparisons",
        params(Param("the value", ANYTHING), Param("the low end", ANYTHING), Param("the high end", ANYTHING)),
        "value BETWEEN low AND high",
        always(BOOLEAN),
        "True when the value is between low and high, both included.",
        ("2 BETWEEN 1 AND 2", "true"),
        _between,
        compute=_compute_between,
        operator=True,
        repeats=(0,),
        refuse=_refuse_each("<="),
        null_safe=True,
    )
)
register(
    Function(
        "LIKE",
        "comparisons",
        params(Param("the text", TEXT), Param("the pattern", TEXT)),
        'text LIKE "pattern"',
        always(BOOLEAN),
        "True when the whole text fits the pattern: % is any text, _ one character, a backslash takes them literally.",
        ('"invoice" LIKE "inv%"', "true"),
        _like,
        compute=lambda _c, text, pattern: fits_text(text, pattern),
        operator=True,
        repeats=(1,),
        refuse=_refuse_pattern,
    )
)
