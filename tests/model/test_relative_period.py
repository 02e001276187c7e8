"""Prior, next, last year's and year-to-date periods on Gregorian, fiscal and listed calendars."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tallybook.errors import RunError
from tallybook.model.period import GREGORIAN, Calendar, Period
from tallybook.model.relative_period import RelativePeriod, RunPeriod

FISCAL = Calendar.model_validate(
    {
        "id": "fiscal",
        "fiscal_year_start": "04-01",
        "levels": [
            {"name": "quarter", "identifier": "FY{{YYYY}}-Q{{Q}}"},
            {"name": "month", "identifier": "FY{{YYYY}}-{{PP}}"},
            {"name": "day", "identifier": "{{calendar_year}}-{{MM}}-{{DD}}"},
        ],
    },
    strict=False,
)


def listed(level: str, *spans: str) -> list[dict[str, str]]:
    return [
        {"identifier": name, "level": level, "start_date": first, "end_date": last}
        for name, first, last in (span.split() for span in spans)
    ]


PERIODS = listed("period", "24P3 2024-07-01 2024-12-31", "25P1 2025-01-01 2025-03-31", "25P2 2025-04-01 2025-12-31",
                 "26P1 2026-01-01 2026-05-31", "26P2 2026-06-01 2026-11-30", "26P3 2026-12-01 2026-12-31")  # fmt: skip
YEARS = listed("fy", "FY24 2024-01-01 2024-12-31", "FY25 2025-01-01 2025-12-31", "FY26 2026-01-01 2026-12-31")
LISTED = Calendar.model_validate({"id": "listed", "periods": PERIODS + YEARS}, strict=False)
WITHOUT_YEARS = Calendar.model_validate({"id": "no-years", "periods": PERIODS}, strict=False)


def relative(value: Any) -> RelativePeriod:
    return TypeAdapter(RelativePeriod).validate_python(value)


def names(calendar: Calendar, period: str, value: Any) -> str:
    found = RunPeriod(calendar.period(period), calendar).relative(relative(value))
    return " ".join(each.identifier for each in found)


@pytest.mark.parametrize(
    ("calendar", "period", "value", "expected"),
    [
        (GREGORIAN, "2026-01", "prior", "2025-12"),
        (GREGORIAN, "2026-01", "next", "2026-02"),
        (GREGORIAN, "2026-01", {"offset": -14}, "2024-11"),
        (GREGORIAN, "2026-01", {"offset": 0}, "2026-01"),
        (GREGORIAN, "2026-01", "same_last_year", "2025-01"),
        (GREGORIAN, "2026-03", "year_to_date", "2026-01 2026-02 2026-03"),
        (GREGORIAN, "2026-01", "year_to_date", "2026-01"),
        (GREGORIAN, "2026-Q1", "prior", "2025-Q4"),
        (GREGORIAN, "2026-Q3", "same_last_year", "2025-Q3"),
        (GREGORIAN, "2026-Q2", "year_to_date", "2026-Q1 2026-Q2"),
        (GREGORIAN, "2026", "prior", "2025"),
        (GREGORIAN, "2026", "same_last_year", "2025"),
        (GREGORIAN, "2026", "year_to_date", "2026"),
        (GREGORIAN, "2024-03-01", "prior", "2024-02-29"),
        (GREGORIAN, "2024-03-01", "same_last_year", "2023-03-01"),
        (GREGORIAN, "2026-01-02", "year_to_date", "2026-01-01 2026-01-02"),
        (FISCAL, "FY2026-01", "prior", "FY2025-12"),
        (FISCAL, "FY2026-02", "same_last_year", "FY2025-02"),
        (FISCAL, "FY2026-02", "year_to_date", "FY2026-01 FY2026-02"),
        (FISCAL, "FY2026-Q1", {"offset": -1}, "FY2025-Q4"),
        (FISCAL, "FY2026-Q4", "same_last_year", "FY2025-Q4"),
        (FISCAL, "2026-04-01", "same_last_year", "2025-04-01"),
        (FISCAL, "2026-04-02", "year_to_date", "2026-04-01 2026-04-02"),
        (LISTED, "26P1", "prior", "25P2"),
        (LISTED, "25P2", "next", "26P1"),
        (LISTED, "26P3", {"offset": -5}, "24P3"),
        (LISTED, "26P2", "same_last_year", "25P2"),
        (LISTED, "26P2", "year_to_date", "26P1 26P2"),
        (LISTED, "FY26", "same_last_year", "FY25"),
    ],
)
def test_a_relative_period_is_counted_on_the_calendar(
    calendar: Calendar, period: str, value: Any, expected: str
) -> None:
    assert names(calendar, period, value) == expected


@pytest.mark.parametrize(
    ("calendar", "period", "value", "words"),
    [
        (GREGORIAN, "2024-02-29", "same_last_year", "has no day on the same date in the year before '2024-02-29'"),
        (GREGORIAN, "2026", {"offset": -3000}, "has no year 3000 periods before '2026'"),
        (LISTED, "24P3", "prior", "calendar 'listed' has no period before '24P3'"),
        (LISTED, "26P3", "next", "has no period after '26P3'"),
        (LISTED, "26P3", "same_last_year", "has no period number 3 in the year before that of '26P3'"),
        (LISTED, "25P1", "same_last_year", "has no period in the year before"),
        (LISTED, "24P3", "year_to_date", "has no period that begins with the year, on 2024-01-01"),
        (LISTED, "FY24", "same_last_year", "has no fy before 'FY24'"),
        (WITHOUT_YEARS, "26P2", "year_to_date", "calendar 'no-years' lists no year with 2026-06-01"),
    ],
)
def test_a_period_that_the_calendar_does_not_have(calendar: Calendar, period: str, value: Any, words: str) -> None:
    with pytest.raises(RunError) as caught:
        names(calendar, period, value)
    assert caught.value.problem.type == "PeriodNotFound"
    assert words in caught.value.problem.message


def test_nothing_is_counted_from_a_period_with_dates_of_its_own() -> None:
    own = Period.model_validate(
        {"identifier": "2026-01", "level": "month", "start_date": "2026-01-05", "end_date": "2026-01-31"}, strict=False
    )
    with pytest.raises(RunError, match="other dates for period '2026-01'"):
        RunPeriod(own, GREGORIAN).relative(relative("prior"))
    assert RunPeriod(own, GREGORIAN).relative(None) == (own,)


@pytest.mark.parametrize("value", ["prior", "next", "same_last_year", "year_to_date", {"offset": -2}])
def test_a_relative_period_is_recorded_as_it_is_written(value: Any) -> None:
    assert TypeAdapter(RelativePeriod).dump_python(relative(value), mode="json") == value


@pytest.mark.parametrize("value", ["prir", "", 3, None, {}, {"offset": "x"}, {"offset": True}, {"offset": 10_000},
                                   {"offset": 1, "x": 2}, ["prior"]], ids=str)  # fmt: skip
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        relative(value)


def test_the_message_shows_how_an_offset_is_written() -> None:
    with pytest.raises(ValidationError, match=r"write a distance in periods as \{offset: -2\} "):
        relative({"ofset": -2})
