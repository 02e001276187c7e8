"""4-4-5, 4-5-4, 5-4-4 and 13-period calendars, compared with published fiscal years."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from tallybook.errors import RunError
from tallybook.model.period import Calendar
from tallybook.model.relative_period import RelativePeriod, RunPeriod


def calendar(**body: Any) -> Calendar:
    return Calendar.model_validate({"id": "weeks"} | body, strict=False)


RETAIL = calendar(weeks="4-5-4", year_ends={"on": "saturday", "nearest": "01-31"}, fiscal_year_named_by="start")
"""The calendar of the National Retail Federation."""
SEPTEMBER = calendar(weeks="4-4-5", year_ends={"on": "saturday", "last_of": 9}, long_month=3)
"""The last Saturday of September, as at Apple."""
DECEMBER = calendar(weeks="5-4-4", year_ends={"on": "sunday", "nearest": "12-31"})
"""Weeks of ISO 8601."""
THIRTEEN = calendar(weeks="13x4", years={"2025": "2024-12-30", "2026": "2025-12-29", "2027": "2027-01-04"})


def length(of: Calendar, year: int) -> int:
    return of.period(f"FY{year}").days // 7


def test_the_retail_calendar_has_the_published_years_of_53_weeks() -> None:
    assert [year for year in range(2000, 2024) if length(RETAIL, year) == 53] == [2000, 2006, 2012, 2017, 2023]
    assert {length(RETAIL, year) for year in range(1980, 2080)} == {52, 53}
    published = {2022: date(2022, 1, 30), 2023: date(2023, 1, 29), 2024: date(2024, 2, 4), 2025: date(2025, 2, 2)}
    assert {year: RETAIL.period(f"FY{year}").start_date for year in published} == published
    assert RETAIL.period("FY2023").end_date == date(2024, 2, 3)


def test_the_last_saturday_of_september_gives_published_years() -> None:
    assert [year for year in range(2010, 2025) if length(SEPTEMBER, year) == 53] == [2012, 2017, 2023]
    ends = {2022: date(2022, 9, 24), 2023: date(2023, 9, 30), 2024: date(2024, 9, 28)}
    assert {year: SEPTEMBER.period(f"FY{year}").end_date for year in ends} == ends
    assert SEPTEMBER.period("FY2023-Q1").end_date == date(2022, 12, 31)
    assert SEPTEMBER.period("FY2023-Q1").days == 14 * 7


def test_weeks_are_those_of_iso_8601() -> None:
    for day in (date(2020, 12, 31), date(2021, 1, 3), date(2021, 1, 4), date(2026, 1, 1), date(2027, 1, 3)):
        (week,) = DECEMBER.between("week", day, day)
        iso = day.isocalendar()
        assert week.identifier == f"FY{iso.year}-W{iso.week:02d}"
    assert [year for year in range(2000, 2030) if length(DECEMBER, year) == 53] == [2004, 2009, 2015, 2020, 2026]


@pytest.mark.parametrize(
    ("of", "year", "weeks"),
    [
        (RETAIL, "FY2022", "4 5 4 4 5 4 4 5 4 4 5 4"),
        (RETAIL, "FY2023", "4 5 4 4 5 4 4 5 4 4 5 5"),
        (SEPTEMBER, "FY2023", "4 4 6 4 4 5 4 4 5 4 4 5"),
        (DECEMBER, "FY2025", "5 4 4 5 4 4 5 4 4 5 4 4"),
        (THIRTEEN, "FY2025", "4 4 4 4 4 4 4 4 4 4 4 4 4"),
        (THIRTEEN, "FY2026", "4 4 4 4 4 4 4 4 4 4 4 4 5"),
        (THIRTEEN, "FY2027", "4 4 4 4 4 4 4 4 4 4 4 4 4"),
    ],
)
def test_a_year_is_cut_into_whole_weeks(of: Calendar, year: str, weeks: str) -> None:
    whole = of.period(year)
    level = "period" if of is THIRTEEN else "month"
    parts = of.children(whole, level)
    assert " ".join(str(part.days // 7) for part in parts) == weeks
    assert [part.identifier for part in parts] == [f"{year}-P{number:02d}" for number in range(1, len(parts) + 1)]
    assert [of.period(part.identifier) for part in parts] == list(parts)
    assert len(of.children(whole, "week")) == whole.days // 7
    assert len(of.children(whole, "day")) == whole.days
    if level == "month":
        assert [quarter.identifier for quarter in of.children(whole, "quarter")] == [
            f"{year}-Q{q}" for q in range(1, 5)
        ]


@pytest.mark.parametrize(
    ("of", "period", "word", "expected"),
    [
        (RETAIL, "FY2024-P01", "prior", "FY2023-P12"),
        (RETAIL, "FY2024-P12", "same_last_year", "FY2023-P12"),
        (RETAIL, "FY2024-W52", "same_last_year", "FY2023-W52"),
        (RETAIL, "FY2024-W01", "prior", "FY2023-W53"),
        (RETAIL, "2024-02-04", "same_last_year", "2023-01-29"),
        (RETAIL, "FY2024-P03", "year_to_date", "FY2024-P01 FY2024-P02 FY2024-P03"),
        (RETAIL, "FY2024-Q2", "same_last_year", "FY2023-Q2"),
        (THIRTEEN, "FY2026-P13", "same_last_year", "FY2025-P13"),
        (THIRTEEN, "FY2027-P01", "prior", "FY2026-P13"),
    ],
)
def test_other_periods_are_found_by_their_number(of: Calendar, period: str, word: str, expected: str) -> None:
    found = RunPeriod(of.period(period), of).relative(RelativePeriod(word))
    assert " ".join(each.identifier for each in found) == expected


@pytest.mark.parametrize(
    ("of", "period", "word"),
    [
        (RETAIL, "FY2023-W53", "same_last_year"),
        (THIRTEEN, "FY2025-P01", "prior"),
        (THIRTEEN, "FY2025-P01", "same_last_year"),
        (THIRTEEN, "FY2027-P13", "next"),
    ],
)
def test_what_has_no_counterpart_is_not_found(of: Calendar, period: str, word: str) -> None:
    with pytest.raises(RunError) as caught:
        RunPeriod(of.period(period), of).relative(RelativePeriod(word))
    assert caught.value.problem.type == "PeriodNotFound"


ENDS = {"on": "saturday", "nearest": "01-31"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"weeks": "4-4-5"}, "needs either `year_ends`"),
        ({"weeks": "4-4-5", "year_ends": ENDS, "years": {"2025": "2025-02-02"}}, "needs either `year_ends`"),
        ({"weeks": "4-4-5", "year_ends": {"on": "saturday"}}, "a year ends on the weekday"),
        ({"weeks": "4-4-5", "year_ends": ENDS | {"last_of": 1}}, "a year ends on the weekday"),
        ({"weeks": "4-4-5", "year_ends": {"on": "saturday", "nearest": "02-30"}}, "is not a day of every year"),
        ({"weeks": "4-4-5", "year_ends": ENDS, "fiscal_year_start": "04-01"}, "is for years of months"),
        ({"weeks": "4-4-5", "years": {"2025": "2025-02-02", "2026": "2026-02-02"}}, "364 days later (52 weeks)"),
        ({"weeks": "4-4-5", "years": {"x": "2025-02-02"}}, "'x' in `years` is not a year"),
        ({"weeks": "4-4-5", "years": {"2030": "2025-02-02"}}, "too far from that year"),
        ({"weeks": "4-4-5", "year_ends": ENDS, "long_month": 13}, "`long_month` is 13"),
        ({"weeks": "13x4", "year_ends": ENDS, "levels": [{"name": "quarter", "identifier": "{{YYYY}}-Q{{Q}}"}]},
         "have no level 'quarter'"),
        ({"weeks": "4-4-5", "year_ends": ENDS, "levels": [{"name": "month", "identifier": "{{YYYY}}-{{MM}}"}]},
         "needs {{PP}}"),
        ({"weeks": "4-4-5", "year_ends": ENDS, "levels": [{"name": "day", "identifier": "{{YYYY}}-{{MM}}-{{DD}}"}]},
         "needs {{calendar_year}}"),
        ({"levels": [{"name": "week", "identifier": "{{YYYY}}-W{{WW}}"}]}, "level 'week' goes with `weeks`"),
        ({"year_ends": ENDS, "levels": [{"name": "year", "identifier": "{{YYYY}}"}]}, "`year_ends` goes with `weeks`"),
    ],
)  # fmt: skip
def test_a_calendar_of_weeks_that_cannot_be(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        calendar(**body)
    assert words in str(caught.value)
