"""A registered version belongs to the period of its run, and a reader by period gets the newest of each period."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import Books

from tallybook.errors import RunError
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.runs.registered import PeriodLocations

SOURCE = FileSource(id="warehouse", type="delta", options=FileOptions(path_prefix="."))


def found(written: str, *read: str) -> dict[str, set[str]] | list[str]:
    """The months, quarters and years read from each period that was written; else those that are missing."""
    by_period = {name: Location(SOURCE, name, period=name) for name in written.split()}
    locations, missing = PeriodLocations.known(by_period, GREGORIAN).of(map(GREGORIAN.period, read))
    if missing:
        return [period.identifier for period in missing]
    return {location.target: {name for name in location.periods if len(name) < 10} for location in locations}


def test_a_period_is_read_from_what_was_written_for_it() -> None:
    assert found("2026-01 2026-02 2026-Q1 2026", "2026-02") == {"2026-02": {"2026-02"}}
    assert found("2026-01 2026-Q1", "2026-Q1") == {"2026-Q1": {"2026-Q1", "2026-01", "2026-02", "2026-03"}}


def test_a_longer_period_is_read_from_all_its_parts() -> None:
    months = {f"2026-0{month}": {f"2026-0{month}"} for month in (1, 2, 3)}
    assert found("2026-01 2026-02 2026-03 2026-04", "2026-Q1") == months
    assert found("2026-01 2026-03", "2026-Q1") == ["2026-02"]
    half = found("2026-Q1 2026-Q2 2026-Q3 2026-10 2026-11 2026-12", "2026")
    assert set(half) == {"2026-Q1", "2026-Q2", "2026-Q3", "2026-10", "2026-11", "2026-12"}
    assert found("2026-Q1 2026-05", "2026") == ["2026-04", "2026-06", "2026-Q3", "2026-Q4"]


def test_a_shorter_period_is_read_from_its_part_of_a_longer_one() -> None:
    assert found("2026-Q1 2026", "2026-02") == {"2026-Q1": {"2026-02"}}
    assert found("2026-Q1", "2026-01", "2026-02") == {"2026-Q1": {"2026-01", "2026-02"}}
    assert found("2026-Q1 2026-01", "2026-01", "2026-02") == {"2026-01": {"2026-01"}, "2026-Q1": {"2026-02"}}
    assert found("2026-01 2026", "2026-Q1") == {"2026": {"2026-Q1", "2026-01", "2026-02", "2026-03"}}
    assert found("2026-Q2", "2026-01") == ["2026-01"]
    assert found("2026-01 FY13", "2026-02") == ["2026-02"], "a period that the calendar has lost is left out"


SO_FAR = """\
project:
  id: so-far
  name: Booked so far
  input_dataset_id: ledger
  operations:
    - {seq: 1, name: Only the year, type: delete, arguments: {}}
    - seq: 2
      name: Append the year
      type: append
      arguments: {source: {dataset_id: ledger, period: year_to_date}}
    - seq: 3
      name: Write
      type: output
      arguments: {destination: {location: "so-far/{{period}}.csv"}, columns: [id, net]}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Books:
    """The ledger of January and February; its readers were activated in between."""
    books = Books.at(tmp_path_factory.mktemp("periods"))
    ledger = "columns: [id, tier, net, _period]"
    books.edit("close.yaml", ledger, f"{ledger}\n        mode: append")
    (books.root / "so-far.yaml").write_text(SO_FAR)
    books.open().activate("close")
    books.run(period="2026-01")
    books.open().activate("report")
    books.open().activate("so-far")
    books.run(period="2026-02")
    return books


def report(books: Books, period: str) -> str:
    return (books.root / f"texts/{period}.csv").read_text()


@pytest.mark.long
def test_each_month_reads_its_own_version(chain: Books) -> None:
    for period, rows in (("2026-01", "a,18.00\nb,36.00\n"), ("2026-02", "d,9.00\n")):
        result = chain.run("report", period)
        assert report(chain, period) == f"id,double\n{rows}"
        assert list(result.warnings) == [], "it needs no new activation"
        assert chain.open().replay(result.run.id).identical


def test_rows_that_a_later_version_repeats_are_read_once(chain: Books) -> None:
    """The ledger appends, so the version of February has the rows of January too."""
    chain.run("so-far", "2026-02")
    rows = (chain.root / "so-far/2026-02.csv").read_text().splitlines()
    assert sorted(rows) == ["a,9.00", "b,18.00", "d,4.50", "id,net"]


def test_a_period_without_a_version_is_refused(chain: Books, tally: Tally) -> None:
    with pytest.raises(RunError) as caught:
        chain.open().plan("report", "2026-03")
    problem = caught.value.problem
    assert (problem.type, problem.message, problem.hint) == (
        "DataNotFound",
        "no version of 'ledger' was written for 2026-03: project 'close' has not been run for it",
        "`tallybook run close --period 2026-03` writes it",
    )
    assert "(version 2, written for 2026-02)" in tally(chain, "plan", "report", "-p", "2026-02").out
    versions = tally(chain, "datasets", "ledger", "--json").json["versions"]
    assert [version["registered_by"]["period"] for version in versions] == ["2026-01", "2026-02"]
    assert "registered for 2026-01 by run" in tally(chain, "datasets", "ledger").out


def test_a_restated_month_is_read_by_later_runs_and_not_by_a_replay(
    tmp_path: Path, spark: SparkSession, tally: Tally
) -> None:
    books = Books.at(tmp_path)
    (tmp_path / "so-far.yaml").write_text(SO_FAR)
    books.open().activate("close")
    books.run(period="2026-01")
    books.open().activate("report")
    before = books.run("report", "2026-01").run
    books.run(period="2026-02")
    books.open().activate("so-far")
    february = books.run("so-far", "2026-02").run
    assert "stale" not in tally(books, "runs", "--json").json
    books.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,70")
    books.run(period="2026-01")
    with books.store() as store:
        [table] = [kept for kept in store.snapshot(before.id).resolver_snapshots if kept.dataset_id == "ledger"]
    assert [(location["period"], location["dataset_version"]) for location in table.locations] == [("2026-01", 1)]
    with books.store() as store:
        [restated] = [entry.run_id for entry in store.registrations() if entry.version == 3]
    reason = f"'ledger' was written anew for 2026-01: version 3, run {restated}"
    assert tally(books, "runs", "--json").json["stale"] == {before.id: [reason], february.id: [reason]}
    assert tally(books, "runs").out.count("  stale\n") == 2
    assert f"  stale: {reason}\n" in tally(books, "runs", february.id).out
    planned = tally(books, "plan", "report", "-p", "2026-01")
    assert f"the last run, {before.id}, is stale:\n  {reason}\n" in planned.out
    assert books.open().replay(before.id).identical
    books.run("report", "2026-01")
    assert report(books, "2026-01") == "id,double\na,126.00\nb,36.00\n"
    assert tally(books, "plan", "report", "-p", "2026-01", "--json").json["stale"] is None
    assert tally(books, "runs", "--json").json["stale"] == {february.id: [reason]}


def test_a_pinned_version_is_read_whatever_its_period(chain: Books) -> None:
    text = (chain.root / "report.yaml").read_text()
    pinned = text.replace("id: report", "id: pinned").replace("ledger", "ledger\n  input_dataset_version: 2")
    (chain.root / "pinned.yaml").write_text(pinned.replace("texts/", "pinned/"))
    plan = chain.open().plan("pinned", "2026-01")
    [location] = plan.locations[plan.input]
    assert (location.dataset_version, location.period, location.periods) == (2, None, ())


@pytest.mark.long
def test_a_quarter_reads_its_months_and_a_month_its_part_of_a_quarter(tmp_path: Path, spark: SparkSession) -> None:
    books = Books.at(tmp_path)
    (tmp_path / "data/sales/2026-03.csv").write_text("id,region,amount\ne,APAC,30\n")
    books.open().activate("close")
    books.run(period="2026-Q1")
    books.open().activate("report")
    books.run("report", "2026-02")
    assert report(books, "2026-02") == "id,double\nd,9.00\n"
    books.run("report", "2026-Q1")
    whole = sorted(report(books, "2026-Q1").splitlines())
    assert whole == ["a,18.00", "b,36.00", "d,9.00", "e,54.00", "id,double"]
    for month in ("2026-04", "2026-05", "2026-06"):
        (tmp_path / f"data/sales/{month}.csv").write_text(f"id,region,amount\nf{month},APAC,30\n")
        books.run(period=month)
    books.run("report", "2026-Q2")
    assert len(report(books, "2026-Q2").splitlines()) == 4
