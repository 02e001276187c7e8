"""The store keeps who closed a period, activated a project or started a run, when and why."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import Books

from tallybook.store.changes import current_user


@pytest.fixture(autouse=True)
def ada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBOOK_USER", "ada")


def test_the_user_is_that_of_the_operating_system_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_user() == "ada"
    monkeypatch.setenv("TALLYBOOK_USER", " ")
    monkeypatch.setenv("LOGNAME", "grace")
    assert current_user() == "grace"


def test_periods(books: Books, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month also shows the closing of its quarter, because that closed it."""
    tally(books, "period", "2026-Q1", "--close", "--reason", "audit is done")
    monkeypatch.setenv("TALLYBOOK_USER", "grace")
    tally(books, "period", "2026-01", "--lock")
    said = tally(books, "period", "2026-01")
    first, closed, locked = said.out.splitlines()
    assert first == "2026-01  month  2026-01-01 to 2026-01-31  locked"
    assert closed.startswith("  2026-Q1 closed on 20") and closed.endswith(" UTC by ada: audit is done")
    assert locked.startswith("  locked on 20") and locked.endswith(" UTC by grace")
    changes = tally(books, "period", "2026-01", "--json").json["changes"]
    assert [(one["period"], one["status"], one["changed_by"], one["reason"]) for one in changes] == [
        ("2026-Q1", "closed", "ada", "audit is done"),
        ("2026-01", "locked", "grace", None),
    ]
    assert tally(books, "period", "2026-04", "--json").json["changes"] == []
    refused = tally(books, "period", "2026-04", "--reason", "why not")
    assert refused.code == 2 and "--reason needs --close or --lock" in refused.err


def test_projects(books: Books, tally: Tally) -> None:
    tally(books, "activate", "close", "--reason", "reviewed by two")
    tally(books, "deactivate", "close", "--reason", "replaced")
    tally(books, "activate", "close")
    with books.store() as store:
        changes = store.project_changes("close")
    assert [(one.status, one.version, one.changed_by, one.reason) for one in changes] == [
        ("active", 1, "ada", "reviewed by two"),
        ("inactive", 1, "ada", "replaced"),
        ("active", 1, "ada", None),
    ]


def test_a_change_that_is_refused_is_not_kept(books: Books, tally: Tally) -> None:
    assert tally(books, "period", "2026-01", "--lock", "--reason", "too early").code == 1
    assert tally(books, "period", "2026-01", "--json").json["changes"] == []
    assert tally(books, "deactivate", "close", "--reason", "never active").code == 1
    with books.store() as store:
        assert store.project_changes("close") == ()


def test_runs(books: Books, tally: Tally, spark: SparkSession) -> None:
    run = tally(books, "run", "close", "-p", "2026-01", "--reason", "first try", "--json").json["runs"][0]["run"]
    assert (run["started_by"], run["reason"]) == ("ada", "first try")
    assert " UTC by ada: first try\n" in tally(books, "runs", run["id"]).out
    assert tally(books, "run", "--retry", run["id"], "--reason", "again").code == 2


def test_a_run_that_is_refused_records_nothing(books: Books, spark: SparkSession) -> None:
    """Neither a run nor a version, whatever refuses it: the period, the project, rows that it has appended."""
    ledger = "columns: [id, tier, net, _period]"
    books.edit("close.yaml", ledger, f"{ledger}\n        mode: append")
    books.open().activate("close")
    books.run()
    books.open().set_period_status("2026-02", "closed")
    books.edit("tiers.yaml", "name: Tiers", "name: The tiers")
    with books.store() as store:
        before = store.recorded(), store.runs()
    for period, type in (("2026-01", "AlreadyAppended"), ("2026-02", "PeriodNotOpen"), ("nonsense", "PeriodNotFound")):
        with pytest.raises(Exception) as caught:
            books.run(period=period)
        assert caught.value.problem.type == type  # type: ignore[attr-defined]
    books.edit("close.yaml", "mode: append", "mode: overwrite")
    with pytest.raises(Exception) as caught:
        books.run(period="2026-03")
    assert caught.value.problem.type == "ProjectNotRunnable"  # type: ignore[attr-defined]
    with books.store() as store:
        assert (store.recorded(), store.runs()) == before
