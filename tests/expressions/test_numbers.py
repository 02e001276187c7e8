"""Arithmetic and rounding on Spark: exact, and failing rather than wrapping."""

from __future__ import annotations

from decimal import Decimal

LARGEST = 2**63 - 1
COLUMNS = {
    "big": ("integer", LARGEST),
    "small": ("integer", -LARGEST - 1),
    "wide": ("decimal(38,0)", Decimal(10**38 - 1)),
    "none": ("integer", None),
    "zero": ("decimal(10,2)", Decimal("0.00")),
}


def test_arithmetic(evaluate):
    evaluate.table(
        """
        2147483647 + 1                  => 2147483648
        1 + 2 * 3                       => 7
        (1 + 2) * 3                     => 9
        10 - 4 - 3                      => 3
        2 - -3                          => 5
        --3                             => 3
        -2 * 3                          => -6
        12 / 4 / 3                      => 1
        0.1 + 0.2                       => 0.3
        1.10 * 3                        => 3.30
        1 / 4                           => 0.25
        1 / 3                           => 0.3333333333333333333333333333333333333
        2 / 3                           => 0.6666666666666666666666666666666666667
        -2 / 3                          => -0.6666666666666666666666666666666666667
        big / 1                         => 9223372036854775807
        1 / big                         => 0.0000000000000000001084202172485504434
        7 % 3                           => 1
        -7 % 3                          => -1
        7 % -3                          => 1
        -7.5 % 2                        => -1.5
        MOD(-7, 3)                      => -1
        MOD(7, -3)                      => 1
        MOD(5.25, 0.5)                  => 0.25
        wide % 1.7                      => 1.2
        MOD(wide, 0.0000000000000000000000007)  => 0.0000000000000000000000003
        MOD(-wide, 0.0000000000000000000000007) => -0.0000000000000000000000003
        MOD(wide, zero * 0.0000000001)  => NULL
        1 / 0                           => NULL
        1.5 / zero                      => NULL
        0 / zero                        => NULL
        5 % 0                           => NULL
        5.5 % zero                      => NULL
        MOD(5, 0)                       => NULL
        none + 1                        => NULL
        1 / none                        => NULL
        -none                           => NULL
        ABS(-2.5)                       => 2.5
        -wide                           => -99999999999999999999999999999999999999
        - -wide                         => 99999999999999999999999999999999999999
        ABS(-wide)                      => 99999999999999999999999999999999999999
        -9223372036854775808            => -9223372036854775808
        MIN(2, 1.5, 3)                  => 1.5
        MAX(2, 1.5, 3)                  => 3
        MIN("b", "a", "B")              => B
        MAX(DATE("2026-01-31"), NOW())  => 2026-02-01 23:30:00+00:00
        MIN(1, none)                    => NULL
        MAX(none, 1)                    => NULL
        MAX(none)                       => NULL
        MIN(1, "a")                     => TypeMismatch
        "1" + 1                         => TypeMismatch
        """,
        COLUMNS,
    )


def test_overflow_fails(evaluate):
    evaluate.table(
        """
        big + 1                         => fails
        small - 1                       => fails
        big * 2                         => fails
        -small                          => fails
        ABS(small)                      => fails
        wide + 1                        => fails
        wide * 10                       => fails
        wide / 0.1                      => fails
        FLOOR(wide)                     => fails
        ROUND(wide)                     => fails
        ROUND(big, -1)                  => fails
        TO_INTEGER(wide)                => fails
        TO_DECIMAL(wide)                => fails
        9223372036854775807 + 1         => fails
        """,
        COLUMNS,
    )


def test_rounding(evaluate):
    evaluate.table(
        """
        ROUND(2.5)                      => 3
        ROUND(-2.5)                     => -3
        ROUND(0.5)                      => 1
        ROUND(-0.5)                     => -1
        ROUND(2.4999)                   => 2
        ROUND(7)                        => 7
        ROUND(2.345, 2)                 => 2.35
        ROUND(-2.345, 2)                => -2.35
        ROUND(2.344, 2)                 => 2.34
        ROUND(9.995, 2)                 => 10.00
        ROUND(2.3, 5)                   => 2.3
        ROUND(5, 3)                     => 5
        ROUND(2.5, 0)                   => 3
        ROUND(1250, -2)                 => 1300
        ROUND(-1250, -2)                => -1300
        ROUND(1249.99, -2)              => 1200
        ROUND(-1250.00, -2)             => -1300
        ROUND(5, -1)                    => 10
        ROUND(5, -2)                    => 0
        ROUND(55.5, -2)                 => 100
        ROUND(1234.5, -38)              => 0
        ROUND(big, 2)                   => 9223372036854775807
        FLOOR(1.5)                      => 1
        FLOOR(-1.5)                     => -2
        FLOOR(-2)                       => -2
        CEIL(1.2)                       => 2
        CEIL(-1.5)                      => -1
        CEIL(big)                       => 9223372036854775807
        ROUND(1.5, 1.0)                 => TypeMismatch
        ROUND(1.5, big)                 => TypeMismatch
        ROUND(1.5, 39)                  => TypeMismatch
        """,
        COLUMNS,
    )


def test_more_roundings(evaluate):
    evaluate.table(
        """
        ROUNDUP(2.001, 2)               => 2.01
        ROUNDUP(-2.001, 2)              => -2.01
        ROUNDUP(1201, -2)               => 1300
        ROUNDDOWN(-2.999, 1)            => -2.9
        TRUNC(-2.999)                   => -2
        TRUNC(1299, -2)                 => 1200
        ROUND_HALF_EVEN(2.5)            => 2
        ROUND_HALF_EVEN(3.5)            => 4
        ROUND_HALF_EVEN(2.675, 2)       => 2.68
        ROUND_HALF_EVEN(2.665, 2)       => 2.66
        TRUNC(1, 39)                    => TypeMismatch
        """
    )


def test_powers_signs_and_percentages(evaluate):
    columns = {"rate": ("decimal(9,8)", Decimal("0.05")), "n": ("integer", 2)}
    evaluate.table(
        """
        POWER(1 + rate, 3)              => 1.157625
        POWER(2, 62)                    => 4611686018427387904
        POWER(2, 63)                    => fails
        POWER(2, -2)                    => 0.25
        POWER(0, -1)                    => NULL
        POWER(0.0, 0)                   => 1
        POWER(1.05, 12)                 => 1.795856326022129
        POWER(2, n)                     => TypeMismatch
        POWER(2, 0.5)                   => TypeMismatch
        POWER(2, 101)                   => TypeMismatch
        SIGN(-0.01)                     => -1
        SIGN(0)                         => 0
        PERCENT_OF(1, 8)                => 12.5
        PERCENT_OF(1, 0)                => NULL
        PERCENT_OF(9223372036854775807, n) => 461168601842738790350
        """,
        columns,
    )
