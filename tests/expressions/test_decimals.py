"""The digits of exact arithmetic: what decimals.py promises, what Spark yields, and what Python's decimals say."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import product

import pytest

from tallybook.expressions import decimals
from tallybook.expressions.check import common_type
from tallybook.expressions.registry import Argument
from tallybook.model.columns import INTEGER, ColumnType, decimal

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
TYPES = [
    decimal(*digits) for digits in ((1, 0), (3, 3), (9, 2), (18, 6), (19, 0), (28, 10), (38, 0), (38, 18), (38, 38))
]
OPERATIONS = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide, "%": EXACT.remainder}


def _values(type: ColumnType) -> list[Decimal]:
    """The smallest and largest of a type, and one with all its digits in use, half of them before any overflow."""
    digits = "7391846205" * 4
    return [
        Decimal(1).scaleb(-type.scale, EXACT),
        Decimal(-(10**type.precision - 1)).scaleb(-type.scale, EXACT),
        Decimal(digits[: type.precision]).scaleb(-type.scale, EXACT),
    ]


def _expected(operator: str, x: Decimal, y: Decimal, scale: int) -> Decimal:
    return OPERATIONS[operator](x, y).quantize(Decimal(1).scaleb(-scale), context=EXACT)


@pytest.mark.parametrize("operator", OPERATIONS)
def test_no_digit_is_lost_that_38_digits_can_keep(evaluate, operator):
    rule = {"+": decimals.added, "-": decimals.added, "*": decimals.multiplied, "/": decimals.divided}
    cases = [
        (a, b, x, y, rule.get(operator, decimals.remainder)(a, b))
        for a, b in product(TYPES, TYPES)
        for x, y in zip(_values(a), reversed(_values(b)), strict=True)
    ]
    fitting = [
        case
        for case in cases
        if abs(_expected(operator, case[2], case[3], case[4].scale)) < 10 ** case[4].integer_digits
    ]
    assert len(fitting) > len(cases) / 2
    columns, expressions = {}, []
    for i, (a, b, x, y, _) in enumerate(fitting):
        columns |= {f"x{i}": (str(a), x), f"y{i}": (str(b), y)}
        expressions.append(f"x{i} {operator} y{i}")
    values = evaluate.all(expressions, columns)
    wrong = [
        f"{x} {operator} {y} ({a}, {b}) is {value}, not {_expected(operator, x, y, type.scale)}"
        for value, (a, b, x, y, type) in zip(values, fitting, strict=True)
        if value != _expected(operator, x, y, type.scale)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        (decimals.added(decimal(18, 6), decimal(18, 6)), "decimal(19,6)"),
        (decimals.multiplied(decimal(18, 6), decimal(18, 6)), "decimal(37,12)"),
        (decimals.multiplied(decimal(38, 10), decimal(38, 10)), "decimal(38,6)"),
        (decimals.divided(decimal(1, 0), decimal(1, 0)), "decimal(38,37)"),
        (decimals.divided(decimal(19, 0), decimal(19, 0)), "decimal(38,19)"),
        (decimals.divided(decimal(38, 0), decimal(38, 10)), "decimal(38,6)"),
        (decimals.remainder(decimal(18, 6), decimal(3, 1)), "decimal(8,6)"),
        (decimals.common(decimal(38, 0), decimal(10, 4)), "decimal(38,4)"),
        (decimals.common(decimal(38, 0), decimal(10, 8)), "decimal(38,6)"),
        (decimals.summed(decimal(18, 6)), "decimal(28,6)"),
        (decimals.summed(decimal(38, 10)), "decimal(38,10)"),
        (decimals.summed(decimal(38, 37)), "decimal(38,27)"),
        (decimals.summed(decimal(38, 25)), "decimal(38,18)"),
    ],
)
def test_digits_of_results(type, expected):
    assert str(type) == expected


def test_an_integer_literal_counts_with_its_own_digits():
    literal, column = Argument(INTEGER, 100), Argument(INTEGER)
    amount = Argument(decimal(10, 2))
    assert str(common_type([amount, literal])) == "decimal(10,2)"
    assert str(common_type([amount, column])) == "decimal(21,2)"
    assert str(decimals.multiplied(amount.widened, literal.widened)) == "decimal(14,2)"
