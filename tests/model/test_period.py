"""Calendars: what their periods are called, how they nest, and what a wrong calendar document is told."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tallybook.errors import RunError
from tallybook.model.period import GREGORIAN, Calendar, Period

FISCAL_LEVELS = (
    {"name": "month", "identifier": "{{calendar_year}}-{{MM}}"},
    {"name": "year", "identifier": "FY{{YYYY}}"},
    {"name": "quarter", "identifier": "FY{{ YY }}-{{QQ}}"},
)
FISCAL = Calendar.model_validate({"id": "fiscal", "fiscal_year_start": "04-01", "levels": FISCAL_LEVELS})

WEEKS = (
    {"identifier": "P1", "level": "month", "start_date": "2026-01-05", "end_date": "2026-02-01", "parent": "FY26"},
    {"identifier": "P2", "level": "month", "start_date": "2026-02-02", "end_date": "2026-03-01", "parent": "FY26"},
    {"identifier": "FY26", "level": "year", "start_date": "2026-01-05", "end_date": "2027-01-03", "status": "closed"},
    {"identifier": "W02", "level": "week", "start_date": "2026-01-12", "end_date": "2026-01-18", "parent": "P1"},
    {"identifier": "W01", "level": "week", "start_date": "2026-01-05", "end_date": "2026-01-11", "parent": "P1"},
)
LISTED = Calendar.model_validate({"id": "retail", "periods": WEEKS})

days = st.dates(date(1990, 1, 1), date(2080, 12, 31))
starts = st.tuples(st.integers(1, 12), st.integers(1, 28), st.sampled_from(["start", "end"]))


def listed(**changes: object) -> dict[str, object]:
    return {"identifier": "W09", "level": "week", "start_date": "2026-01-19", "end_date": "2026-01-25", **changes}


@pytest.mark.parametrize(
    ("identifier", "level", "first", "last", "parent"),
    [
        ("2026", "year", "2026-01-01", "2026-12-31", None),
        ("2026-Q1", "quarter", "2026-01-01", "2026-03-31", "2026"),
        ("2024-02", "month", "2024-02-01", "2024-02-29", "2024-Q1"),
        ("2026-12", "month", "2026-12-01", "2026-12-31", "2026-Q4"),
        ("2026-01-31", "day", "2026-01-31", "2026-01-31", "2026-01"),
    ],
)
def test_gregorian_periods(identifier: str, level: str, first: str, last: str, parent: str | None) -> None:
    expected = Period.model_validate(
        {"identifier": identifier, "level": level, "start_date": first, "end_date": last, "parent": parent}
    )
    assert GREGORIAN.period(identifier) == expected


@pytest.mark.parametrize(
    "identifier", ["2026-13", "2026-Q5", "2026-1", "2026-02-29", "26", "0000", "9999", "", "2026-01 ", "２０２６"]
)
def test_what_is_no_period_is_told_how_periods_look(identifier: str) -> None:
    with pytest.raises(RunError) as caught:
        GREGORIAN.period(identifier)
    problem = caught.value.problem
    assert (problem.type, problem.message) == ("PeriodNotFound", f"calendar 'gregorian' has no period '{identifier}'")
    assert problem.hint == "periods look like '2026' (year), '2026-Q1' (quarter), '2026-01' (month), '2026-01-01' (day)"


def test_a_fiscal_year_counts_from_its_start() -> None:
    assert FISCAL.level_names == ("year", "quarter", "month")
    year, quarter = FISCAL.period("FY2026"), FISCAL.period("FY26-Q4")
    assert (year.start_date, year.end_date) == (date(2025, 4, 1), date(2026, 3, 31))
    assert (quarter.start_date, quarter.end_date, quarter.parent) == (date(2026, 1, 1), date(2026, 3, 31), "FY2026")
    assert [month.identifier for month in FISCAL.children(quarter, "month")] == ["2026-01", "2026-02", "2026-03"]
    assert FISCAL.period("2026-03").parent == "FY26-Q4"


def test_a_fiscal_year_can_be_named_by_the_year_it_starts_in() -> None:
    by_start = FISCAL.model_copy(update={"fiscal_year_named_by": "start"})
    assert by_start.period("FY2026").start_date == date(2026, 4, 1)


def test_a_fiscal_year_may_start_within_a_month() -> None:
    levels = ({"name": "month", "identifier": "{{YYYY}}-P{{PP}}"},)
    tax = Calendar.model_validate({"id": "tax", "fiscal_year_start": "04-06", "levels": levels})
    first, last = tax.period("2026-P01"), tax.period("2026-P12")
    assert (first.start_date, first.end_date) == (date(2025, 4, 6), date(2025, 5, 5))
    assert (last.start_date, last.end_date) == (date(2026, 3, 6), date(2026, 4, 5))


@pytest.mark.parametrize(("written", "month"), [(7, 7), ("7", 7), ("07", 7), ("07-01", 7), ("10", 10)])
def test_a_month_alone_starts_a_fiscal_year(written: object, month: int) -> None:
    calendar = Calendar.model_validate({"id": "f", "fiscal_year_start": written, "levels": FISCAL_LEVELS})
    assert calendar.period("FY2026").start_date == date(2025, month, 1)


@settings(deadline=None)
@given(days, starts, st.sampled_from(["year", "quarter", "month", "day"]))
def test_levels_divide_time_and_names_lead_back(day: date, start: tuple[int, int, str], level: str) -> None:
    month, first, named_by = start
    levels = (
        {"name": "year", "identifier": "FY{{YYYY}}"},
        {"name": "quarter", "identifier": "FY{{YYYY}}-Q{{Q}}"},
        {"name": "month", "identifier": "FY{{YYYY}}-P{{PP}}"},
        {"name": "day", "identifier": "{{calendar_year}}{{MM}}{{DD}}"},
    )
    calendar = Calendar.model_validate(
        {"id": "f", "fiscal_year_start": f"{month}-{first}", "fiscal_year_named_by": named_by, "levels": levels}
    )
    single = calendar.period(f"{day:%Y%m%d}")
    assert (single.start_date, single.end_date) == (day, day)
    period = calendar.containing(single, level)
    assert calendar.period(period.identifier) == period
    assert period.parent is None or calendar.period(period.parent).contains(period)
    for finer in calendar.level_names[calendar.level_names.index(level) + 1 :]:
        children = calendar.children(period, finer)
        assert children[0].start_date == period.start_date
        assert children[-1].end_date == period.end_date
        gaps = {b.start_date - a.end_date for a, b in pairwise(children)}
        assert gaps <= {timedelta(days=1)}
        assert len({child.identifier for child in children}) == len(children)


def test_listed_periods_are_ordered_by_length_and_date() -> None:
    assert LISTED.level_names == ("year", "month", "week")
    assert LISTED.finer("week", than="month") and not LISTED.finer("month", than="month")
    assert [week.identifier for week in LISTED.children(LISTED.period("P1"), "week")] == ["W01", "W02"]
    assert LISTED.containing(LISTED.period("W02"), "year").identifier == "FY26"
    assert (LISTED.initial_status("FY26"), LISTED.initial_status("P1")) == ("closed", "open")


def test_a_listed_period_that_is_missing_gets_the_nearest() -> None:
    with pytest.raises(RunError) as caught:
        LISTED.period("FY-26")
    assert caught.value.problem.hint == "did you mean 'FY26'?"


def test_a_week_across_two_months_divides_neither() -> None:
    across = {"identifier": "W05", "level": "week", "start_date": "2026-01-29", "end_date": "2026-02-04"}
    calendar = Calendar.model_validate({"id": "retail", "periods": (*WEEKS, across)})
    for month in ("P1", "P2"):
        with pytest.raises(RunError, match="'W05' is only partly inside"):
            calendar.children(calendar.period(month), "week")
    with pytest.raises(RunError, match="no period of level 'month' that contains all of 'W05'"):
        calendar.containing(calendar.period("W05"), "month")


def test_a_period_without_parts_is_an_error_not_nothing() -> None:
    with pytest.raises(RunError, match="into periods of level 'week': there are none"):
        LISTED.children(LISTED.period("P2"), "week")


def test_an_unknown_level_is_named_with_the_nearest() -> None:
    with pytest.raises(RunError) as caught:
        GREGORIAN.finer("moth", than="year")
    assert (caught.value.problem.type, caught.value.problem.hint) == ("CalendarNotFound", "did you mean 'month'?")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_date": "2026-01-26"}, "period 'W09' starts 2026-01-26, after it ends 2026-01-25"),
        ({"start_date": "2026-1-19"}, "'2026-1-19' is not a date; write it as 2026-01-31"),
        ({"start_date": "2026-W04-1"}, "'2026-W04-1' is not a date; write it as 2026-01-31"),
        ({"start_date": "2026-01-18"}, "periods 'W02' and 'W09' of level 'week' overlap"),
        ({"identifier": "W02"}, "period listed more than once: W02"),
        ({"parent": "P7"}, "the parent 'P7' of period 'W09' is not listed"),
        ({"parent": "W01"}, "the parent 'W01' of period 'W09' is not of a coarser level"),
        ({"parent": "P2"}, "is not inside its parent 'P2' (2026-02-02 to 2026-03-01)"),
        ({"status": "shut"}, "Input should be 'open', 'closed' or 'locked'"),
    ],
)
def test_a_wrong_list_of_periods_is_refused(changes: dict[str, object], message: str) -> None:
    Calendar.model_validate({"id": "retail", "periods": (*WEEKS, listed())})
    with pytest.raises(ValidationError) as caught:
        Calendar.model_validate({"id": "retail", "periods": (*WEEKS, listed(**changes))})
    assert message in str(caught.value)


def test_all_faults_of_a_list_are_told_at_once() -> None:
    wrong = (*WEEKS, listed(identifier="W08", start_date="2026-01-18", parent="P7"))
    with pytest.raises(ValidationError, match=r"'W02' and 'W08' .* overlap; the parent 'P7'"):
        Calendar.model_validate({"id": "retail", "periods": wrong})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "either `levels` or `periods`"),
        ({"levels": FISCAL_LEVELS, "periods": WEEKS}, "either `levels` or `periods`"),
        ({"periods": WEEKS, "fiscal_year_start": "04-01"}, "go with `levels`"),
        ({"levels": FISCAL_LEVELS, "fiscal_year_start": "13"}, "'13' is not a start of a fiscal year"),
        ({"levels": FISCAL_LEVELS, "fiscal_year_start": "02-29"}, "days 29 to 31 are not in every month"),
        ({"levels": (*FISCAL_LEVELS, {"name": "year", "identifier": "{{YYYY}}"})}, "level 'year' is defined twice"),
    ],
)
def test_a_wrong_calendar_is_refused(body: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Calendar.model_validate({"id": "c", **body})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("level", "identifier", "message"),
    [
        ("year", "FY", "gives the same name to more than one year: it needs {{YYYY}} or {{YY}} or {{calendar_year}}"),
        ("quarter", "{{YYYY}}", "gives the same name to more than one quarter: it needs {{Q}}"),
        ("month", "{{YYYY}}-{{Q}}", "gives the same name to more than one month: it needs {{PP}} or {{MM}}"),
        ("day", "{{YYYY}}-{{DD}}", "gives the same name to more than one day: it needs {{PP}} or {{MM}}"),
        ("year", "{{yyyy}}", "'{{yyyy}}' in '{{yyyy}}' is not a token of an identifier; did you mean 'YYYY'?"),
        ("year", "{{YYYY", "'{{' in '{{YYYY' is not a token of an identifier"),
    ],
)
def test_a_level_that_cannot_tell_its_periods_apart_is_refused(level: str, identifier: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Calendar.model_validate({"id": "c", "levels": ({"name": level, "identifier": identifier},)})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("quarter", "month", "distinct"),
    [
        ("{{YYYY}}-Q{{Q}}", "{{YYYY}}-{{PP}}", True),
        ("{{YYYY}}-0{{Q}}", "{{YYYY}}-{{PP}}", False),
        ("{{YYYY}}{{QQ}}", "{{YYYY}}Q{{MM}}", True),
        ("{{YYYY}}-{{MM}}", "{{YYYY}}-{{PP}}", False),
        ("{{YYYY}}-#{{Q}}", "{{YYYY}}-{{PP}}", True),
    ],
)
def test_an_identifier_belongs_to_one_level(quarter: str, month: str, distinct: bool) -> None:
    levels = ({"name": "quarter", "identifier": quarter}, {"name": "month", "identifier": month})
    if distinct:
        assert Calendar.model_validate({"id": "c", "levels": levels}).levels[0].identifier == quarter
    else:
        with pytest.raises(ValidationError, match="an identifier could be a quarter"):
            Calendar.model_validate({"id": "c", "levels": levels})
