"""Dates and moments on Spark, whatever time zone this process lives in."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest

COLUMNS = {
    "day": ("date", date(2026, 1, 31)),
    "leap": ("date", date(2024, 2, 29)),
    "never": ("date", None),
    "none": ("integer", None),
    "two": ("integer", 2),
    "huge": ("integer", 2**63 - 1),
    "moment": ("timestamp", datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
}


def test_a_long_way_to_a_date_that_is_none(evaluate):
    if "connect" in type(evaluate.spark).__module__:
        pytest.skip("too deep for Spark Connect")
    way = 'DATE("0001-12-31") + 1 + two - 2 - two + two + two - 1 - 1 - two'
    evaluate.table(f"ADD_MONTHS({way}, -12) => fails", COLUMNS)


def test_dates(evaluate):
    evaluate.table(
        """
        DATE("2026-01-31")                      => 2026-01-31
        DATE("0001-01-01")                      => 0001-01-01
        DATE("1582-10-10")                      => 1582-10-10
        DATE("9999-12-31")                      => 9999-12-31
        DATE(2026, two, 28)                     => 2026-02-28
        DATE(2026, none, 1)                     => NULL
        DATE(NULL)                              => NULL
        DATE(2026, two, 30)                     => fails
        DATE(2026, 13, 1)                       => fails
        DATE(2026, 1, huge)                     => fails
        DATE("2026-02-30")                      => TypeMismatch
        DATE("2026-2-3")                        => TypeMismatch
        DATE("31.01.2026")                      => TypeMismatch
        DATE(TO_STRING(day))                    => TypeMismatch
        day + 1                                 => 2026-02-01
        1 + day                                 => 2026-02-01
        day - 31                                => 2025-12-31
        day + none                              => NULL
        never - 1                               => NULL
        day + 1.5                               => TypeMismatch
        day - day                               => TypeMismatch
        day + day                               => TypeMismatch
        1 - day                                 => TypeMismatch
        day + 2147483647                        => fails
        day - huge                              => fails
        DATEADD(day, huge)                      => fails
        DATE("9999-12-31") + 0 * two            => 9999-12-31
        DATE("9999-12-30") + two                => fails
        DATE("0001-01-01") - two                => fails
        DATEADD(DATE("9999-12-31"), two)        => fails
        DATE(4999 * two, 12, 31)                => 9998-12-31
        DATE(5000 * two, 1, 1)                  => fails
        DATE(0 * two, 1, 1)                     => fails
        ADD_MONTHS(DATE("0001-02-28"), 1 - two) => 0001-01-28
        ADD_MONTHS(DATE("0001-01-31"), 1 - two) => fails
        DATEADD(day, -31)                       => 2025-12-31
        DATEADD(leap, 366)                      => 2025-03-01
        DATEDIFF(DATE("2026-03-01"), day)       => 29
        DATEDIFF(day, DATE("2026-03-01"))       => -29
        DATEDIFF(moment, day)                   => 0
        DATEDIFF(never, day)                    => NULL
        ADD_MONTHS(day, 1)                      => 2026-02-28
        ADD_MONTHS(day, 25)                     => 2028-02-29
        ADD_MONTHS(leap, 12)                    => 2025-02-28
        ADD_MONTHS(leap, 48)                    => 2028-02-29
        ADD_MONTHS(DATE("2026-02-28"), 1)       => 2026-03-28
        ADD_MONTHS(day, -2)                     => 2025-11-30
        ADD_MONTHS(day, 0)                      => 2026-01-31
        ADD_MONTHS(day, huge)                   => fails
        MONTH_END(leap)                         => 2024-02-29
        MONTH_END(DATE("2025-02-01"))           => 2025-02-28
        MONTH_END(DATE("2026-12-31"))           => 2026-12-31
        YEAR(day) * 100 + MONTH(day)            => 202601
        DAY(moment)                             => 31
        YEAR(never)                             => NULL
        """,
        COLUMNS,
    )


def test_moments(evaluate):
    evaluate.table(
        """
        TIMESTAMP("2026-01-31T12:00:00Z")               => 2026-01-31 12:00:00+00:00
        TIMESTAMP("2026-01-31T12:00:00")                => 2026-01-31 12:00:00+00:00
        TIMESTAMP("2026-01-31 12:00")                   => 2026-01-31 12:00:00+00:00
        TIMESTAMP("2026-01-31T00:30:00+01:00")          => 2026-01-30 23:30:00+00:00
        TIMESTAMP("2026-01-31T12:00:00.123456-05:30")   => 2026-01-31 17:30:00.123456+00:00
        TIMESTAMP("1500-01-01T00:00:00Z")               => 1500-01-01 00:00:00+00:00
        TIMESTAMP(NULL)                                 => NULL
        TIMESTAMP("2026-01-31")                         => TypeMismatch
        TIMESTAMP("0001-01-01T00:00:00+14:00")          => TypeMismatch
        TIMESTAMP("0000-01-01T00:00:00Z")               => TypeMismatch
        TIMESTAMP("2026-01-31T12:00:00.1234560Z")       => 2026-01-31 12:00:00.123456+00:00
        TIMESTAMP("2026-01-31T12:00:00.1234567Z")       => TypeMismatch
        TIMESTAMP("2026-01-31T12:00:00.00000001")       => TypeMismatch
        TIMESTAMP("noon")                               => TypeMismatch
        TODAY()                                         => 2026-02-01
        NOW()                                           => 2026-02-01 23:30:00+00:00
        PERIOD()                                        => 2026-01
        PERIOD(0)                                       => 2026-01
        PERIOD(-1)                                      => 2025-12
        PERIOD(14)                                      => 2027-03
        PERIOD_START()                                  => 2026-01-01
        PERIOD_START(-12)                               => 2025-01-01
        PERIOD_END()                                    => 2026-01-31
        PERIOD_END(1)                                   => 2026-02-28
        moment + 1                                      => TypeMismatch
        moment > NOW()                                  => false
        """,
        COLUMNS,
    )


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland"])
def test_no_local_time_zone_has_a_say(evaluate, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        evaluate.table(
            """
            TIMESTAMP("2026-01-31T12:00:00Z")               => 2026-01-31 12:00:00+00:00
            TO_STRING(TIMESTAMP("2026-07-31T23:30:00Z"))    => 2026-07-31 23:30:00
            DATE("2026-03-29")                              => 2026-03-29
            TO_DATE(moment)                                 => 2026-01-31
            TODAY()                                         => 2026-02-01
            TO_STRING(NOW())                                => 2026-02-01 23:30:00
            DAY(NOW())                                      => 1
            """,
            COLUMNS,
        )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_parts_and_intervals(evaluate):
    evaluate.table(
        """
        QUARTER(DATE("2026-12-31"))                                     => 4
        WEEKDAY(DATE("2026-11-16"))                                     => 1
        WEEKDAY(DATE("2026-11-15"))                                     => 7
        WEEK(DATE("2027-01-01"))                                        => 53
        WEEK(DATE("2025-12-29"))                                        => 1
        EOMONTH(DATE("2026-02-01"))                                     => 2026-02-28
        MONTHS_BETWEEN(DATE("2026-02-28"), DATE("2026-01-31"))          => 1
        MONTHS_BETWEEN(DATE("2026-03-30"), DATE("2026-01-31"))          => 1
        MONTHS_BETWEEN(DATE("2026-03-31"), DATE("2026-02-28"))          => 1
        MONTHS_BETWEEN(DATE("2026-02-27"), DATE("2026-01-28"))          => 0
        MONTHS_BETWEEN(DATE("2026-01-28"), DATE("2026-02-27"))          => 0
        MONTHS_BETWEEN(DATE("2025-01-15"), DATE("2026-02-15"))          => -13
        """
    )


def test_year_fractions(evaluate):
    """The examples of ISDA's memorandum on day counts, and the rules for the 30th and 31st."""
    evaluate.table(
        """
        YEARFRAC(DATE("2003-11-01"), DATE("2004-05-01"), "act/act")     => 0.497724380567
        YEARFRAC(DATE("1999-02-01"), DATE("1999-07-01"), "act/act")     => 0.410958904110
        YEARFRAC(DATE("2002-08-15"), DATE("2003-07-15"), "act/act")     => 0.915068493151
        YEARFRAC(DATE("2026-01-01"), DATE("2027-01-01"), "act/360")     => 1.013888888889
        YEARFRAC(DATE("2024-01-01"), DATE("2025-01-01"), "act/365")     => 1.002739726027
        YEARFRAC(DATE("2026-01-31"), DATE("2026-03-31"), "30/360")      => 0.166666666667
        YEARFRAC(DATE("2026-01-29"), DATE("2026-03-31"), "30/360")      => 0.172222222222
        YEARFRAC(DATE("2026-02-28"), DATE("2026-03-31"), "30/360")      => 0.091666666667
        YEARFRAC(DATE("2026-07-01"), DATE("2026-01-01"), "30/360")      => -0.5
        YEARFRAC(DATE("2026-07-01"), DATE("2026-01-01"), "act/364")     => TypeMismatch
        YEARFRAC(DATE("2026-07-01"), DATE("2026-01-01"), 1)             => TypeMismatch
        """
    )
