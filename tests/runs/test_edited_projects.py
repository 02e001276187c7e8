"""An edit of an active project never turns its runs into runs of the sandbox."""

from __future__ import annotations

import pytest
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books

from tallybook.errors import RunError


def cheaper(books: Books) -> None:
    books.edit("close.yaml", "amount * 0.9", "amount * 0.5")


def recorded(books: Books) -> tuple[object, ...]:
    """What the store has of definitions, states and runs."""
    with books.store() as store:
        return store.recorded(), store.runs()


def test_a_run_of_an_edited_active_project_is_refused_and_records_nothing(active: Books) -> None:
    before = recorded(active)
    cheaper(active)
    with pytest.raises(RunError) as caught:
        active.run("close")
    problem = caught.value.problem
    assert problem.type == "ProjectNotRunnable" and "has changed since its version 1" in problem.message
    assert active.open().refusal("close", "2026-01") == problem
    assert recorded(active) == before
    active.edit("close.yaml", "amount * 0.5", "amount * 0.9")
    assert not active.run("close").run.sandbox, "an edit that was taken back changes nothing"


def test_recording_the_edit_first_does_not_help(active: Books) -> None:
    cheaper(active)
    [state] = [state for state in active.open().apply().states if state.project_id == "close"]
    assert (state.status, state.version, state.active_version) == ("draft", 2, 1)
    with pytest.raises(RunError, match="has changed since its version 1 was activated"):
        active.run("close")


def test_draft_runs_an_edited_project_in_the_sandbox(active: Books) -> None:
    active.run("close")
    cheaper(active)
    tried = active.open().run("close", "2026-01", draft=True).run
    assert tried.sandbox and tried.project_status == "draft"
    assert active.ledger() == JANUARY
    active.open().activate("close")
    assert not active.run("close").run.sandbox
    assert active.ledger() != JANUARY


@pytest.mark.long
def test_draft_runs_an_unchanged_active_project_in_the_sandbox_too(active: Books) -> None:
    active.run("close")
    cheaper(active)
    active.open().run("close", "2026-01", draft=True)
    active.open().activate("report")
    result = active.open().run("report", "2026-01", draft=True)
    assert result.run.sandbox and result.run.project_status == "active"
    text = next((active.root / ".tallybook/sandbox/report/2026-01").glob("2-*")).read_text()
    assert text == "id,double\na,10.00\nb,20.00\n", "it reads what the draft registered"
    assert not (active.root / "texts").exists()


def test_the_command(active: Books, tally: Tally) -> None:
    cheaper(active)
    refused = tally(active, "run", "close", "-p", "2026-01", "--json")
    assert refused.code == 1 and refused.json["problems"][0]["type"] == "ProjectNotRunnable"
    assert "a run would be refused: project 'close' has changed" in tally(active, "plan", "close", "-p", "2026-01").out
    tried = tally(active, "run", "close", "-p", "2026-01", "--draft", "--json")
    assert tried.json["runs"][0]["run"]["sandbox"]
    assert tally(active, "run", "--retry", "x", "--draft").code == 2
