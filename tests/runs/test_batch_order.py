"""The order of many runs, without Spark and without a store."""

from __future__ import annotations

import itertools

import pytest

from tallybook.errors import RunError, UsageError, ValidationError
from tallybook.model.period import GREGORIAN, Calendar
from tallybook.model.relative_period import RelativePeriod
from tallybook.runs.batch_order import (
    Item,
    PlannedRun,
    ProjectFlow,
    Read,
    chosen_periods,
    order_runs,
    with_followers,
)

PRIOR, YEAR_TO_DATE = RelativePeriod("prior"), RelativePeriod("year_to_date")
RETAIL = Calendar.model_validate(
    {"id": "retail", "weeks": "4-4-5", "year_ends": {"on": "saturday", "nearest": "01-31"}}, strict=False
)


def flow(registers: str = "", *reads: Read, sandbox: bool = False) -> ProjectFlow:
    return ProjectFlow(frozenset(reads), frozenset(registers.split()), sandbox)


def by_period(dataset: str, period: RelativePeriod | None = None) -> Read:
    return Read(dataset, by_period=True, period=period)


def newest(dataset: str) -> Read:
    return Read(dataset, by_period=False)


def order(flows: dict[str, ProjectFlow], *periods: str, only: set[Item] | None = None) -> tuple[PlannedRun, ...]:
    return order_runs(flows, chosen_periods(periods, GREGORIAN), GREGORIAN, only)


def names(runs: tuple[PlannedRun, ...]) -> list[str]:
    return [str(run.item) for run in runs]


def needs(runs: tuple[PlannedRun, ...], item: str) -> list[str]:
    return next([str(need) for need in run.needs] for run in runs if str(run.item) == item)


def test_consumers_come_after_producers_in_each_period() -> None:
    runs = order({"report": flow("", by_period("ledger")), "close": flow("ledger")}, "2026-01..2026-02")
    assert names(runs) == ["close 2026-01", "report 2026-01", "close 2026-02", "report 2026-02"]
    assert needs(runs, "report 2026-02") == ["close 2026-02"]


def test_other_periods_are_needed_too() -> None:
    flows = {
        "roll": flow("", by_period("ledger", PRIOR)),
        "year": flow("", by_period("ledger", YEAR_TO_DATE)),
        "close": flow("ledger"),
    }
    runs = order(flows, "2026-01..2026-03")
    assert needs(runs, "roll 2026-03") == ["close 2026-02"]
    assert needs(runs, "roll 2026-01") == [], "December is not part of the batch"
    assert needs(runs, "year 2026-03") == ["close 2026-01", "close 2026-02", "close 2026-03"]


def test_a_quarter_needs_its_months() -> None:
    runs = order({"report": flow("", by_period("ledger")), "close": flow("ledger")}, "2026-Q1", "2026-01..2026-03")
    assert [name for name in names(runs) if name.startswith("close")][-1] == "close 2026-Q1"
    assert needs(runs, "report 2026-Q1") == ["close 2026-01", "close 2026-02", "close 2026-03", "close 2026-Q1"]


def test_the_newest_version_is_read_before_the_next_one_is_written() -> None:
    runs = order({"rates": flow("rates"), "close": flow("", newest("rates"))}, "2026-01..2026-02")
    later = next(run for run in runs if str(run.item) == "rates 2026-02")
    assert set(map(str, later.after)) == {"rates 2026-01", "close 2026-01"}
    assert not later.needs, "a failed January does not stop the rates of February"


def test_active_projects_do_not_wait_for_drafts_but_drafts_do() -> None:
    active = {"report": flow("", by_period("ledger")), "close": flow("ledger", sandbox=True)}
    assert needs(order(active, "2026-01"), "report 2026-01") == []
    drafts = {"report": flow("", by_period("ledger"), sandbox=True), "close": flow("ledger", sandbox=True)}
    assert needs(order(drafts, "2026-01"), "report 2026-01") == ["close 2026-01"]


def test_a_circle_is_named() -> None:
    with pytest.raises(ValidationError, match="a 2026-01 needs b 2026-01 needs a 2026-01"):
        order({"a": flow("x", by_period("y")), "b": flow("y", by_period("x"))}, "2026-01")


def test_a_circle_over_time_is_none() -> None:
    runs = order({"a": flow("x", by_period("y", PRIOR)), "b": flow("y", by_period("x"))}, "2026-01..2026-03")
    assert names(runs)[:4] == ["a 2026-01", "b 2026-01", "a 2026-02", "b 2026-02"]


def test_what_needs_a_chosen_run_is_chosen_too() -> None:
    flows = {"close": flow("ledger"), "roll": flow("", by_period("ledger", PRIOR)), "other": flow()}
    runs = order(flows, "2026-01..2026-03")
    chosen = with_followers(runs, {Item("close", "2026-01")})
    assert chosen == {Item("close", "2026-01"), Item("roll", "2026-02")}
    again = order(flows, "2026-01..2026-03", only={Item("close", "2026-01"), Item("close", "2026-03")})
    assert [str(item) for item in again[1].after] == ["close 2026-01"], "one project writes one period after the other"


def test_ranges() -> None:
    periods = chosen_periods(["2026-11..2027-01", "2026-12"], GREGORIAN)
    assert [period.identifier for period in periods] == ["2026-11", "2026-12", "2027-01"]
    fiscal = chosen_periods(["FY2026-P11..FY2027-P02"], RETAIL)
    assert [period.identifier for period in fiscal] == ["FY2026-P11", "FY2026-P12", "FY2027-P01", "FY2027-P02"]
    assert [period.days // 7 for period in fiscal] == [4, 5, 4, 4]


WRONG = {
    "inverted": ("2026-03..2026-01", "ends before it begins"),
    "mixed": ("2026-01..2026-Q2", "begins with a month and ends with a quarter"),
    "open": ("2026-01..", "is not a range of periods"),
}


@pytest.mark.parametrize(("written", "message"), WRONG.values(), ids=WRONG)
def test_wrong_ranges(written: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen_periods([written], GREGORIAN)


def test_an_unknown_period_of_a_range() -> None:
    with pytest.raises(RunError, match="has no period '2026-13'"):
        chosen_periods(["2026-01..2026-13"], GREGORIAN)


def test_forty_projects_and_twelve_months() -> None:
    flows = {"p0": flow("d0")}
    flows |= {f"p{n}": flow(f"d{n}", by_period(f"d{n - 1}"), by_period("d0", YEAR_TO_DATE)) for n in range(1, 40)}
    runs = order(dict(reversed(flows.items())), "2026-01..2026-12")
    places = {run.item: place for place, run in enumerate(runs)}
    assert len(runs) == 480
    edges = itertools.chain.from_iterable(((run.item, need) for need in (*run.needs, *run.after)) for run in runs)
    assert all(places[need] < places[item] for item, need in edges)
