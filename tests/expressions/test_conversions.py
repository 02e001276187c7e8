"""Conversions on Spark: what is not exactly a number or a date fails the query."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

COLUMNS = {
    "amount": ("decimal(38,20)", Decimal("0.00000000000000000001")),
    "large": ("decimal(38,0)", Decimal(10**37)),
    "day": ("date", date(2026, 1, 31)),
    "bad": ("string", "12a"),
    "year0": ("string", "0000-05-05"),
    "none": ("string", None),
}


def test_to_text(evaluate):
    evaluate.table(
        """
        TO_STRING(1.50)                             => 1.50
        TO_STRING(-7)                               => -7
        TO_STRING(amount)                           => 0.00000000000000000001
        TO_STRING(amount * 0)                       => 0.000000000000000000
        TO_STRING(large)                            => 10000000000000000000000000000000000000
        TO_STRING(TRUE)                             => true
        TO_STRING(day)                              => 2026-01-31
        TO_STRING(TIMESTAMP("2026-01-31T12:00Z"))   => 2026-01-31 12:00:00
        TO_STRING("a")                              => a
        TO_STRING(NULL)                             => NULL
        """,
        COLUMNS,
    )


def test_to_numbers(evaluate):
    evaluate.table(
        """
        TO_INTEGER("42")                            => 42
        TO_INTEGER("-42")                           => -42
        TO_INTEGER(" 42 ")                          => 42
        TO_INTEGER(1.9)                             => 1
        TO_INTEGER(-1.9)                            => -1
        TO_INTEGER(7)                               => 7
        TO_INTEGER(none)                            => NULL
        TO_INTEGER("4.2")                           => fails
        TO_INTEGER("")                              => fails
        TO_INTEGER("1,000")                         => fails
        TO_INTEGER(bad)                             => fails
        TO_INTEGER("9223372036854775808")           => fails
        TO_INTEGER(TRUE)                            => TypeMismatch
        TO_INTEGER(day)                             => TypeMismatch
        TO_DECIMAL("1.5")                           => 1.5
        TO_DECIMAL(" 1.5 ")                         => 1.5
        TO_DECIMAL("1.0000005")                     => 1.000001
        TO_DECIMAL("1.005", 10, 2)                  => 1.01
        TO_DECIMAL("-1.005", 10, 2)                 => -1.01
        TO_DECIMAL(1, 38, 37)                       => 1
        TO_DECIMAL(none)                            => NULL
        TO_DECIMAL("1.5", NULL, 2)                  => NULL
        TO_DECIMAL("12345.67", 6, 2)                => fails
        TO_DECIMAL("")                              => fails
        TO_DECIMAL("NaN")                           => fails
        TO_DECIMAL("1,5")                           => fails
        TO_DECIMAL(bad)                             => fails
        TO_DECIMAL("1", 39, 2)                      => TypeMismatch
        TO_DECIMAL("1", 2, 3)                       => TypeMismatch
        TO_DECIMAL("1", 10)                         => TypeMismatch
        TO_DECIMAL("1", TO_INTEGER("10"), 2)        => TypeMismatch
        """,
        COLUMNS,
    )


def test_to_dates(evaluate):
    evaluate.table(
        """
        TO_DATE("2026-01-31")                       => 2026-01-31
        TO_DATE("0001-01-01")                       => 0001-01-01
        TO_DATE(TIMESTAMP("2026-01-31T23:59Z"))     => 2026-01-31
        TO_DATE(day)                                => 2026-01-31
        TO_DATE(none)                               => NULL
        TO_DATE("2026-1-5")                         => fails
        TO_DATE(" 2026-01-05")                      => fails
        TO_DATE("2026-01-05 ")                      => fails
        TO_DATE("2026-01-05x")                      => fails
        TO_DATE("2026-01-05T00:00:00")              => fails
        TO_DATE("2026-02-30")                       => fails
        TO_DATE("-2026-01-05")                      => fails
        TO_DATE("+12026-01-05")                     => fails
        TO_DATE("0000-01-01")                       => fails
        TO_DATE("0000-12-31")                       => fails
        TO_DATE(year0)                              => fails
        TO_DATE("05.01.2026")                       => fails
        TO_DATE("")                                 => fails
        TO_DATE(bad)                                => fails
        TO_DATE(20260131)                           => TypeMismatch
        """,
        COLUMNS,
    )
