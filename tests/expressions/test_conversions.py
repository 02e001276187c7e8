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


def test_conversions_that_are_tried(evaluate):
    evaluate.table(
        """
        TRY_TO_INTEGER(" 42 ")                          => 42
        TRY_TO_INTEGER("4.2")                           => NULL
        TRY_TO_INTEGER(99999999999999999999)            => NULL
        TRY_TO_DECIMAL("1e40")                          => NULL
        TRY_TO_DECIMAL("1.005", 10, 2)                  => 1.01
        TRY_TO_DECIMAL(1000, 5, 2)                      => NULL
        TRY_TO_DATE("2026-02-30")                       => NULL
        TRY_TO_DATE("2026-1-31")                        => NULL
        TRY_TO_DATE("2026-01-31")                       => 2026-01-31
        TRY_TO_INTEGER(TO_STRING(TO_INTEGER("x")))      => fails
        """
    )


def test_patterns_of_dates(evaluate):
    evaluate.table(
        """
        TO_DATE("31.01.2026", "dd.mm.yyyy")             => 2026-01-31
        TO_DATE("31.01.2026", "DD.MM.YYYY")             => 2026-01-31
        TO_DATE("1/2/26", "m/d/yy")                     => 2026-01-02
        TO_DATE("5-JAN-2026", "d-mmm-yyyy")             => 2026-01-05
        TO_DATE("March 2026", "mmmm yyyy")              => 2026-03-01
        TO_DATE("20260131", "yyyymmdd")                 => 2026-01-31
        TO_DATE("31.02.2026", "dd.mm.yyyy")             => fails
        TO_DATE("1.2.2026", "dd.mm.yyyy")               => fails
        TO_DATE("31.01.2026 ", "dd.mm.yyyy")            => fails
        TO_DATE("2026", "yyyy")                         => TypeMismatch
        TO_DATE("112026", "dmyyyy")                     => TypeMismatch
        TO_DATE("2026-01-31 12", "yyyy-mm-dd hh")       => TypeMismatch
        TO_DATE(NOW(), "yyyy-mm-dd")                    => TypeMismatch
        """
    )


def test_text_in_a_form(evaluate):
    evaluate.table(
        """
        TEXT(1234567.895, "#,##0.00")                   => 1,234,567.90
        TEXT(-0.004, "0.00")                            => 0.00
        TEXT(0.125, "0.00")                             => 0.13
        TEXT(42, "00000")                               => 00042
        TEXT(0.1234, "0.0%")                            => 12.3%
        TEXT(5, "0.##")                                 => 5
        TEXT(5.5, "0.##")                               => 5.5
        TEXT(DATE("2026-01-05"), "dd.mm.yyyy")          => 05.01.2026
        TEXT(DATE("2026-01-05"), "mmmm d, yyyy")        => January 5, 2026
        TEXT(TIMESTAMP("2026-01-05T23:00:00-02:00"), "YYYY-MM-DD") => 2026-01-06
        TEXT(1, "yyyy")                                 => TypeMismatch
        TEXT(1, "$0")                                   => TypeMismatch
        TEXT(DATE("2026-01-05"), "0.00")                => TypeMismatch
        TEXT(DATE("2026-01-05"), "hh:mm")               => TypeMismatch
        """
    )
