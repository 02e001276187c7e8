"""Who may still write: a run asks the store directly before it publishes, and closing waits for active runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.kit import record

from tallybook.errors import Problem, RunError
from tallybook.model.run import Run, Snapshot
from tallybook.store import active, runs
from tallybook.store.active import DEAD_AFTER, current_owner
from tallybook.store.database import now
from tallybook.store.store import Store
from tallybook.store.tables import PERIODS

NewRun = Callable[..., Run]
Body = Callable[..., dict[str, Any]]
DIED = Problem("InternalError", "the process ended")


@pytest.fixture
def started(store: Store, new_run: NewRun, snapshot: Snapshot) -> Run:
    return store.start_run(new_run(), snapshot)


def refused(store: Store, run: Run) -> str:
    with pytest.raises(RunError) as caught:
        store.check_may_write(run)
    with pytest.raises(RunError):
        store.register_dataset("sales", {"id": "sales"}, run, 1, {})
    assert store.latest("dataset", "sales") is None
    return f"{caught.value.problem.type}: {caught.value.problem.message}"


def test_a_running_run_may_write(store: Store, started: Run) -> None:
    store.check_may_write(started)


def test_a_run_that_was_declared_dead_may_not_write(store: Store, started: Run) -> None:
    store.fail_run(started, DIED)
    assert (
        refused(store, started) == f"RunSuperseded: run {started.id} may not write any more: it is recorded as failed"
    )
    retried = store.retry_run(started.id)
    assert "attempt 2" in refused(store, started)
    store.check_may_write(retried)
    assert retried.claim > started.claim == started.id_epoch_ms


def test_a_locked_period_stops_the_run(store: Store, started: Run) -> None:
    """Closing is refused while the run is active, so the status is changed behind its back."""
    change_period(store, "closed")
    assert refused(store, started).endswith("anything more: period 2026-01 is closed")
    with store._write() as connection:
        connection.execute(sa.text("UPDATE runs SET reopen_reason = 'late invoice'"))
    store.check_may_write(started)
    change_period(store, "locked")
    assert refused(store, started).endswith("anything more: period 2026-01 is locked")


def change_period(store: Store, status: str) -> None:
    with store._write() as connection:
        connection.execute(sa.delete(PERIODS))
        values = {"calendar_id": "gregorian", "identifier": "2026-01", "status": status, "changed_at": now()}
        connection.execute(sa.insert(PERIODS).values(workspace_id=store.workspace_id, **values))


def test_a_project_that_changed_its_status_stops_the_run(store: Store, started: Run, project_body: Body) -> None:
    record(store, "project", "close", project_body(name="Month end"))
    store.check_may_write(started)
    operation = project_body()["operations"][0] | {"selector": "amount > 9"}
    record(store, "project", "close", project_body(operations=[operation]))
    assert "ProjectNotRunnable" in refused(store, started) and "is draft now and was active" in refused(store, started)
    store.activate("close", 3, 1)
    store.check_may_write(started)


def test_a_draft_writes_to_its_sandbox_until_it_is_activated(store: Store, new_run: NewRun) -> None:
    store.redraft("close")
    draft = new_run(sandbox=True)
    store.check_may_write(draft)
    store.activate("close", 1, 1)
    assert "is active now and was draft" in refused(store, draft)


def test_a_retry_of_a_run_whose_project_is_a_draft_by_now_is_refused(store: Store, started: Run) -> None:
    store.fail_run(started, DIED)
    store.redraft("close")
    with pytest.raises(RunError, match="is draft now and was active"):
        store.retry_run(started.id)


def test_nobody_closes_a_period_or_takes_a_project_out_of_use_under_a_run(store: Store, started: Run) -> None:
    for attempt in (
        lambda: store.set_period_status("gregorian", "2026-01", "closed"),
        lambda: store.deactivate("close"),
    ):
        with pytest.raises(RunError, match=f"while run {started.id}") as caught:
            attempt()
        assert caught.value.problem.type == "ConcurrentRun"
    assert store.period_status("gregorian", "2026-01") == "open"
    assert store.set_period_status("gregorian", "2026-02", "closed") == "closed"
    store.fail_run(started, DIED)
    reopened = store.retry_run(started.id)
    with pytest.raises(RunError, match="cannot become closed while run"):
        store.set_period_status("gregorian", "2026-01", "closed")
    store.complete_run(reopened)
    assert store.set_period_status("gregorian", "2026-01", "closed") == "closed"
    assert store.deactivate("close").status == "inactive"


def test_a_dead_run_stops_nobody(store: Store, new_run: NewRun) -> None:
    new_run(owner=current_owner().model_copy(update={"pid": 2**22 + 1}))
    assert store.set_period_status("gregorian", "2026-01", "closed") == "closed"
    new_run("2026-02", owner=current_owner().model_copy(update={"pid": 2**22 + 1}))
    assert store.deactivate("close").status == "inactive"


def test_liveness_goes_by_the_clock_of_the_database(
    store: Store, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose clock is hours off neither declares others dead nor is declared dead."""
    if store.is_sqlite:
        pytest.skip("an SQLite file is used by one host, whose clock is the only one")
    ahead = datetime.now(UTC) + timedelta(hours=5)
    monkeypatch.setattr(active, "now", lambda: ahead)
    monkeypatch.setattr(runs, "now", lambda: ahead)
    run = new_run(owner=current_owner().model_copy(update={"host": "elsewhere"}))
    assert run.created_at == ahead and abs(run.heartbeat_at - datetime.now(UTC)) < DEAD_AFTER
    store.heartbeat(run)
    assert abs(store.run(run.id).heartbeat_at - datetime.now(UTC)) < DEAD_AFTER
    assert store.fail_dead_runs() == ()
