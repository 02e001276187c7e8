"""Many runs with one command: their order, failures, retries, stale runs, several at a time."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import Books

from tallybook.errors import RunError, UsageError, ValidationError

YEAR_TO_DATE = """\
    project:
      id: ytd
      name: Year to date
      input_dataset_id: ledger
      operations:
        - seq: 1
          name: Total
          type: update
          arguments:
            joins:
              - alias: y
                dataset_id: ledger
                period: year_to_date
                aggregation: {group_by: [tier], aggregations: [{column: total, expression: SUM(net)}]}
                on: ledger.tier = y.tier
            assignments: [{column: total, expression: y.total}]
        - seq: 2
          name: Text
          type: output
          arguments: {destination: {location: "totals/{{period}}.csv"}, columns: [id, total]}
    """


@pytest.fixture
def year(books: Books, spark: SparkSession) -> Books:
    """Three active projects: the close, and two that read its ledger. Nothing has run."""
    (books.root / "data/sales/2026-03.csv").write_text("id,region,amount\ne,EMEA,100\n")
    (books.root / "ytd.yaml").write_text(dedent(YEAR_TO_DATE))
    for project in ("close", "report", "ytd"):
        activate(books, project)
    return books


def activate(books: Books, project: str) -> None:
    """Activates a project although what it reads is not registered yet."""
    if project != "close":
        with books.store() as store:
            if not any(entry.dataset_id == "ledger" for entry in store.registrations()):
                books.run("close", "2026-01")
    books.open().activate(project)


def statuses(document: dict[str, Any]) -> dict[str, str]:
    return {f"{item['project']} {item['period']}": item["status"] for item in document["items"]}


def totals(books: Books, period: str) -> dict[str, str]:
    lines = (books.root / "totals" / f"{period}.csv").read_text().splitlines()[1:]
    return dict(line.split(",") for line in lines)


def break_february(books: Books) -> None:
    (books.root / "data/sales/2026-02.csv").rename(books.root / "data/sales/february.csv")


def repair_february(books: Books) -> None:
    (books.root / "data/sales/february.csv").rename(books.root / "data/sales/2026-02.csv")


@pytest.mark.long
def test_a_year_by_one_command(year: Books, tally: Tally) -> None:
    break_february(year)
    said = tally(year, "run", "--all", "--period", "2026-01..2026-03", "--json")
    assert said.code == 1
    assert statuses(said.json) == {
        "close 2026-01": "completed",
        "report 2026-01": "completed",
        "ytd 2026-01": "completed",
        "close 2026-02": "failed",
        "report 2026-02": "skipped",
        "ytd 2026-02": "skipped",
        "close 2026-03": "completed",
        "report 2026-03": "completed",
        "ytd 2026-03": "skipped",
    }
    skipped = [item["because"] for item in said.json["items"] if item["status"] == "skipped"]
    assert skipped == [{"project": "close", "period": "2026-02"}] * 3
    assert [problem["type"] for problem in said.json["problems"]] == ["DataNotFound"]
    assert len(said.json["runs"]) == 5

    repair_february(year)
    order = tally(year, "run", "--retry", "--plan-only", "--json").json["order"]
    assert [(run["project"], run["period"]) for run in order] == [
        ("close", "2026-02"),
        ("report", "2026-02"),
        ("ytd", "2026-02"),
        ("ytd", "2026-03"),
    ]
    retried = tally(year, "run", "--retry", said.json["batch"][:12])
    assert retried.code == 0 and "4 runs: 4 completed" in retried.out
    assert totals(year, "2026-03") == {"e": "103.50"}
    again = tally(year, "run", "--retry")
    assert again.code == 0 and "0 runs: nothing to run" in again.out

    year.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,20")
    year.run("close", "2026-01")
    with year.store() as store:
        before = len(store.runs())
    stale = tally(year, "run", "--all", "--period", "2026-01..2026-03", "--stale", "--json")
    assert statuses(stale.json) == dict.fromkeys(
        ("report 2026-01", "ytd 2026-01", "ytd 2026-02", "ytd 2026-03"), "completed"
    )
    assert {left["reason"] for left in stale.json["left_out"]} == {"up to date"}
    with year.store() as store:
        assert len(store.runs()) == before + 4
    assert totals(year, "2026-03") == {"e": "112.50"}
    assert tally(year, "run", "--all", "--period", "2026-01..2026-03", "--stale", "--json").json["items"] == []


@pytest.mark.long
def test_a_retry_of_a_period_that_was_closed_since_needs_a_reason(
    books: Books, tally: Tally, spark: SparkSession
) -> None:
    books.open().activate("close")
    break_february(books)
    assert tally(books, "run", "close", "--period", "2026-01..2026-02", "--json").code == 1
    repair_february(books)
    books.open().set_period_status("2026-02", "closed")
    refused = tally(books, "run", "--retry", "--json")
    assert refused.code == 1 and refused.json["problems"][0]["type"] == "PeriodNotOpen"
    retried = tally(books, "run", "--retry", "--reopen-reason", "late invoice", "--json")
    assert statuses(retried.json) == {"close 2026-02": "completed"}
    assert retried.json["runs"][0]["run"]["reopen_reason"] == "late invoice"


@pytest.mark.long
def test_several_at_a_time(year: Books, tally: Tally) -> None:
    break_february(year)
    said = tally(year, "run", "--all", "--period", "2026-01..2026-03", "--parallel", "3", "--json")
    found = statuses(said.json)
    assert said.code == 1
    assert [name for name, status in found.items() if status == "failed"] == ["close 2026-02"]
    assert [name for name, status in found.items() if status == "skipped"] == [
        "report 2026-02",
        "ytd 2026-02",
        "ytd 2026-03",
    ]
    repair_february(year)
    assert tally(year, "run", "--retry", "--parallel", "2", "--json").code == 0
    assert totals(year, "2026-03") == {"e": "103.50"}


def test_nothing_starts_if_something_is_unknown_or_closed(year: Books, tally: Tally) -> None:
    with year.store() as store:
        before = store.runs()
    with pytest.raises(ValidationError, match="there is no project 'nope'"):
        year.open().run_many(["close", "nope"], ["2026-01"])
    with pytest.raises(UsageError, match="ends before it begins"):
        year.open().run_many(["close"], ["2026-03..2026-01"])
    year.open().set_period_status("2026-02", "closed")
    with pytest.raises(RunError, match="2026-02"):
        year.open().run_many(["close"], ["2026-01..2026-03"])
    with year.store() as store:
        assert store.runs() == before
    assert tally(year, "run", "close", "close", "-p", "2026-01", "-p", "2026-01").code == 0, "a name twice is one run"
    with year.store() as store:
        assert len(store.runs()) == len(before) + 1


def test_what_all_means(year: Books, tally: Tally) -> None:
    year.open().deactivate("report")
    year.edit("ytd.yaml", "y.total}", "y.total * 2}")
    plan = tally(year, "run", "--all", "--period", "2026-01", "--plan-only", "--json").json
    assert [run["project"] for run in plan["order"]] == ["close", "ytd"], "an edit does not remove it from the night"
    assert plan["left_out"] == [{"project": "report", "reason": "inactive"}]
    said = tally(year, "run", "--all", "--period", "2026-01", "--json")
    assert statuses(said.json) == {"close 2026-01": "completed", "ytd 2026-01": "failed"}
    assert said.json["problems"][0]["type"] == "ProjectNotRunnable"


def test_a_project_in_use_whose_file_is_broken_fails_and_is_not_forgotten(year: Books, tally: Tally) -> None:
    year.edit("close.yaml", "name: Close", "name: Close: again")
    said = tally(year, "run", "--all", "--period", "2026-01", "--json")
    assert statuses(said.json) == {
        "close 2026-01": "failed",
        "report 2026-01": "skipped",
        "ytd 2026-01": "skipped",
    }
    assert "(project 'close' may be defined here)" in said.json["problems"][0]["message"]


def test_a_plan_names_the_first_and_last_of_many_periods(books: Books, tally: Tally) -> None:
    (books.root / "ytd.yaml").write_text(dedent(YEAR_TO_DATE))
    plan = tally(books, "run", "close", "ytd", "--period", "2026-01..2026-12", "--draft", "--plan-only").out
    assert plan.splitlines()[7].split(maxsplit=3)[3] == "close 2026-01, close 2026-02, close 2026-03"
    assert plan.splitlines()[-1].split(maxsplit=3)[3] == "close 2026-01 to 2026-12 (12 periods)"


def test_all_of_nothing(books: Books, tally: Tally) -> None:
    said = tally(books, "run", "--all", "--period", "2026-01", "--json")
    assert said.code == 0 and said.json["items"] == []
    assert [left["project"] for left in said.json["left_out"]] == ["close", "report"]


def test_an_active_project_does_not_read_what_a_draft_of_the_batch_writes(year: Books, tally: Tally) -> None:
    year.edit("close.yaml", "amount * 0.9", "amount * 0.5")
    plan = tally(year, "run", "close", "report", "--period", "2026-01", "--draft", "--plan-only", "--json").json
    assert plan["order"][1]["needs"], "with --draft both are in the sandbox"
    (year.root / "new.yaml").write_text((year.root / "close.yaml").read_text().replace("id: close", "id: new"))
    plan = tally(year, "run", "new", "report", "--period", "2026-01", "--plan-only", "--json").json
    assert "'report' does not read what 'new' writes here" in plan["warnings"][0]


def test_a_partly_appended_run_is_continued_and_not_appended_twice(
    appending: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallybook.runs import outputs

    write = outputs.write

    def failing(*args: Any, **options: Any) -> Any:
        if options["seq"] == 50:
            raise OSError("the disk is full")
        return write(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(outputs, "write", failing)
        first = appending.open().run_many(["close"], ["2026-01..2026-02"])
    assert [run.status for run in first.runs] == ["failed", "failed"]
    done = appending.open().retry_many()
    assert done.is_completed
    assert [run.run_id for run in done.runs] == [run.run_id for run in first.runs]
    assert len(appending.ledger()) == 3


def test_progress_and_results_for_a_notebook(year: Books) -> None:
    from tallybook.workspace.many import BatchWatcher

    told: list[str] = []
    watcher = BatchWatcher(
        started=lambda item, number, count: told.append(f"{number} of {count}: {item}"),
        ended=lambda run: told.append(f"{run.item} {run.status} {run.rows}"),
    )
    result = year.open().run_many(["report", "close"], ["2026-01"], watcher=watcher)
    assert told == [
        "1 of 2: close 2026-01",
        "close 2026-01 completed 7",
        "2 of 2: report 2026-01",
        "report 2026-01 completed 2",
    ]
    assert result.is_completed and [run.rows for run in result.runs] == [7, 2]
    with year.store() as store:
        batch = store.batch()
    assert json.loads(batch.model_dump_json())["items"][1]["status"] == "completed"


@pytest.mark.long
def test_closing_a_period_names_what_is_not_done(year: Books, tally: Tally) -> None:
    year.run("report", "2026-01")
    year.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,20")
    year.run("close", "2026-01")
    said = tally(year, "period", "2026-01", "--close")
    assert said.code == 0 and "2026-01  month  2026-01-01 to 2026-01-31  closed" in said.out
    assert "warning: project ytd has not run\n" in said.err
    assert "warning: project report is stale for 2026-01: 'ledger' was written anew for 2026-01" in said.err
    assert "close" not in said.err
    unfinished = tally(year, "period", "2026-Q1", "--close", "--json").json["unfinished"]
    assert {(entry["project"], entry["reason"]) for entry in unfinished if "stale" not in entry["reason"]} == {
        ("close", "has not run for the whole period"),
        ("report", "has not run for the whole period"),
        ("ytd", "has not run"),
    }
