"""Comparisons on Spark: numbers by value whatever their digits, text by code point."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from operator import eq, ge, gt, le, lt, ne

import pytest

OPERATORS = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
WHOLE = ["0", "1", "-1", "9", "-9", "-10", "99999999999999999999999999999999999999"]
FRACTIONS = [
    "0",
    "0.5",
    "-0.5",
    "0.00000000000000000000000000000000000001",
    "-0.99999999999999999999999999999999999999",
]
DIGITS = ["9.0000000000000000000000000000000000001", "-9.0000000000000000000000000000000000001", "9", "-9.5"]


def test_comparisons(evaluate):
    evaluate.table(
        r"""
        1 = 1.0                                             => true
        2.50 >= 2.5                                         => true
        1 <> 1.01                                           => true
        1 == 1 AND 1 != 2                                   => true
        "a" = "A"                                           => false
        "a" = "a "                                          => false
        "B" < "a"                                           => true
        "Z" < "é"                                           => true
        "～" < "🙂"                                          => true
        DATE("2026-01-31") < DATE("2026-02-01")             => true
        DATE("2026-01-31") = TIMESTAMP("2026-01-31T00:00Z") => true
        DATE("2026-01-31") < TIMESTAMP("2026-01-31T00:01Z") => true
        TRUE = FALSE                                        => false
        NULL = NULL                                         => NULL
        NULL <> 1                                           => NULL
        none > 1                                            => NULL
        1 IN (1, NULL)                                      => true
        1 IN (2, NULL)                                      => NULL
        1 NOT IN (2, NULL)                                  => NULL
        1 NOT IN (2, 3)                                     => true
        1 IN (NULL)                                         => NULL
        NULL IN (1)                                         => NULL
        1 IN (1.0, 2)                                       => true
        "a" IN ("A", "b")                                   => false
        DATE("2026-01-31") IN (TIMESTAMP("2026-01-31T00:00Z"))  => true
        2 BETWEEN 1 AND 2                                   => true
        2 BETWEEN 2.5 AND 3                                 => false
        2 NOT BETWEEN 1 AND 2                               => false
        2 BETWEEN 3 AND 1                                   => false
        2 BETWEEN NULL AND 1                                => false
        2 BETWEEN NULL AND 3                                => NULL
        "10" = 10                                           => TypeMismatch
        "2026-01-31" = DATE("2026-01-31")                   => TypeMismatch
        TRUE < FALSE                                        => TypeMismatch
        1 IN (1, "a")                                       => TypeMismatch
        1 BETWEEN "a" AND 2                                 => TypeMismatch
        """,
        {"none": ("integer", None)},
    )


def test_patterns(evaluate):
    evaluate.table(
        r"""
        "invoice" LIKE "inv%"       => true
        "invoice" LIKE "INV%"       => false
        "invoice" LIKE "inv"        => false
        "invoice" NOT LIKE "inv%"   => false
        "a" LIKE "_"                => true
        "🙂" LIKE "_"                => true
        "" LIKE "%"                 => true
        "100%" LIKE "100\%"         => true
        "1000" LIKE "100\%"         => false
        "a_b" LIKE "a\_b"           => true
        "axb" LIKE "a\_b"           => false
        "a\\b" LIKE "a\\\\b"        => true
        "a.c" LIKE "a.c"            => true
        "abc" LIKE "a.c"            => false
        "abc" LIKE pattern          => true
        none LIKE "a"               => NULL
        "a" LIKE none               => NULL
        "ab" LIKE "a\b"             => TypeMismatch
        "a" LIKE "a\\"              => TypeMismatch
        "ab" LIKE broken            => fails
        1 LIKE "1"                  => TypeMismatch
        """,
        {"pattern": ("string", "a%"), "none": ("string", None), "broken": ("string", "a\\b")},
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("decimal(38,0)", "decimal(38,38)"),
        ("decimal(38,37)", "decimal(38,0)"),
        ("decimal(38,38)", "decimal(38,37)"),
        ("integer", "decimal(38,30)"),
    ],
)
def test_numbers_no_common_decimal_can_hold(evaluate, left, right):
    samples = {
        "decimal(38,0)": WHOLE,
        "decimal(38,38)": FRACTIONS,
        "decimal(38,37)": DIGITS,
        "decimal(38,30)": ["0", "9.000000000000000000000000000001", "-9.5", "-9"],
        "integer": ["0", "9", "-9", "-10"],
    }
    number = {True: int, False: Decimal}
    pairs = list(product(samples[left], samples[right]))
    rows = [(number[left == "integer"](x), Decimal(y)) for x, y in pairs]
    results = evaluate.over(
        [f"x {op} y" for op in OPERATORS] + ["x IN (y)", "SWITCH(x, y, TRUE, FALSE)"], {"x": left, "y": right}, rows
    )
    for (x, y), values in zip(rows, results, strict=True):
        assert values == [compare(x, y) for compare in OPERATORS.values()] + [x == y] * 2, (x, y)
