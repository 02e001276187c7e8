"""`mode: append` for a project and period that has appended before: refused, continued, or appended once more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kit.workspaces import FEBRUARY, JANUARY, Books, parquet_rows
from tests.runs.forks import Forks, Job

from tallybook.cli.main import main
from tallybook.errors import Problem, RunError
from tallybook.model.run import Run
from tallybook.runs.run_guard import append_outputs


def refused(books: Books, **options: Any) -> Problem:
    """The problem a run is refused with; the refusal leaves no trace."""
    with books.store() as store:
        before = len(store.runs()), store.versions("project"), store.versions("dataset")
    with pytest.raises(RunError) as caught:
        books.run(**options)
    assert caught.value.run_id is None
    with books.store() as store:
        assert (len(store.runs()), store.versions("project"), store.versions("dataset")) == before
    return caught.value.problem


def killed(books: Books, forks: Forks, moment: str) -> Run:
    assert forks.run(Job(str(books.root), "2026-01", dies=moment)) == ["killed"]
    with books.store() as store:
        return store.runs(limit=1)[0]


def test_a_month_is_not_appended_twice_by_mistake(appending: Books, capsys: pytest.CaptureFixture[str]) -> None:
    first = appending.run().run
    appending.edit("tiers.yaml", "name: Tiers", "name: All tiers")
    problem = refused(appending)
    ledger = appending.root / "warehouse" / "ledger"
    assert problem.type == "AlreadyAppended"
    assert problem.message == f"run {first.id} (completed) has appended 2 rows to delta {ledger} for 2026-01"
    assert problem.hint == (
        "`tallybook run close --period 2026-01 --again` appends once more; with `mode: replace_period` an output to "
        "Delta or a database replaces the rows of the period instead"
    )
    assert appending.open().refusal("close", "2026-01") == problem
    assert appending.ledger() == JANUARY
    assert appending.run(period="2026-02").run.status == "completed", "another month is another append"

    at = ["--workspace", str(appending.root)]
    assert main(["run", "close", "--period", "2026-01", *at]) == 1
    assert "AlreadyAppended" in capsys.readouterr().err
    assert main(["run", "close", "--period", "2026-01", "--again", *at]) == 0
    assert f"warning: appends once more: run {first.id}" in capsys.readouterr().out
    assert appending.ledger() == sorted([*JANUARY, *JANUARY, *FEBRUARY], key=str)
    with appending.store() as store:
        second = store.runs(limit=1)[0]
        assert store.snapshot(second.id).appended_before == (first.id,)
    assert refused(appending).message.endswith("for 2026-01, and so did 1 earlier run")


@pytest.mark.parametrize("format", [pytest.param("delta", marks=pytest.mark.long), "parquet"])
def test_killed_between_writing_and_recording(appending: Books, forks: Forks, format: str) -> None:
    """The store has only heard that the output began; the destination knows."""
    if format == "parquet":
        appending.edit("close.yaml", "datasource_id: warehouse, table: ledger", 'location: "ledger"')
        appending.edit("close.yaml", "register_as_dataset: ledger", "include_deleted: false")
        appending.open().activate("close")
    died = killed(appending, forks, "committed" if format == "delta" else "published")
    problem = refused(appending)
    assert problem.message.startswith(f"run {died.id} (failed) has appended rows to {format} ")
    assert problem.hint is not None and problem.hint.startswith(f"`tallybook run --retry {died.id}` continues that run")
    assert appending.open().retry(died.id).run.status == "completed"
    rows = appending.ledger() if format == "delta" else parquet_rows(appending.root / "ledger", "id")
    assert len(rows) == len(JANUARY)
    assert f"run {died.id} (completed)" in refused(appending).message


def test_killed_before_anything_was_written(appending: Books, forks: Forks) -> None:
    killed(appending, forks, "writing")
    assert appending.run().run.status == "completed"
    assert appending.ledger() == JANUARY


def test_a_destination_that_cannot_be_asked_counts_as_written(appending: Books, forks: Forks) -> None:
    died = killed(appending, forks, "writing")
    log = appending.root / "warehouse" / "ledger" / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("not a log")
    assert refused(appending).message.startswith(f"run {died.id} (failed) may have appended rows to delta ")


def test_a_retry_is_refused_beside_rows_that_another_run_appended_since(appending: Books, forks: Forks) -> None:
    first = killed(appending, forks, "writing")
    second = killed(appending, forks, "committed")
    with pytest.raises(RunError, match=f"run {second.id} of the same project and period has written output 30 since"):
        appending.open().retry(first.id)
    assert appending.ledger() == JANUARY


def output(seq: int, table: str, mode: str | None = None) -> dict[str, Any]:
    arguments = {"destination": {"datasource_id": "w", "table": table}} | ({"mode": mode} if mode else {})
    return {"seq": seq, "type": "output", "arguments": arguments}


@pytest.mark.parametrize(
    ("outputs", "appending"),
    [
        ([output(1, "a", "append")], {1}),
        ([output(1, "a"), output(2, "a", "append")], set()),
        ([output(2, "a"), output(1, "a", "append")], {1}),
        ([output(1, "a"), output(2, "b", "append"), output(3, "a", "append")], {2}),
        ([output(1, "a", "append"), output(2, "a", "append")], {1, 2}),
        ([{"seq": 1, "type": "delete"}, output(2, "a", "error")], set()),
    ],
)
def test_what_adds_to_the_rows_of_earlier_runs(outputs: list[dict[str, Any]], appending: set[int]) -> None:
    """An output that follows one which replaced the same location doubles nothing."""
    assert append_outputs({"operations": outputs}) == appending
