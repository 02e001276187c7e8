"""Runs: who may start, every change of status, results, snapshots that never change, retries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.store.kit import record

from tallybook.errors import Problem, RunError, StoreError
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import GREGORIAN
from tallybook.model.run import OperationResult, OutputResult, Run, Snapshot
from tallybook.store.runs import _next_epoch_ms
from tallybook.store.store import Store

NewRun = Callable[..., Run]
Body = Callable[..., dict[str, Any]]
PROBLEM = Problem("DataNotFound", "nothing at /data", seq=3)


def test_a_new_run_is_queued_with_ids_of_its_own(store: Store, new_run: NewRun) -> None:
    run, other = new_run("2026-01"), new_run("2026-02")
    assert (run.status, run.attempt, run.sandbox, run.problem) == ("queued", 1, False, None)
    assert UUID(run.id).version == 7 and UUID(run.id).int >> 80 == run.id_epoch_ms
    assert run.run_timestamp == datetime.fromtimestamp(run.id_epoch_ms / 1000, UTC)
    assert other.id_epoch_ms > run.id_epoch_ms and other.id > run.id
    assert store.run(run.id) == run


def test_epoch_numbers_go_on_where_the_clock_stands_still_or_goes_back(store: Store, new_run: NewRun) -> None:
    ahead = new_run("2026-01").id_epoch_ms + 10_000_000
    with store._write() as connection:
        connection.execute(sa.text(f"UPDATE id_clock SET last_ms = {ahead}"))
    assert [new_run(f"2026-0{month}").id_epoch_ms for month in (2, 3)] == [ahead + 1, ahead + 2]


def test_epoch_numbers_given_within_one_millisecond_differ(store: Store) -> None:
    with store._write() as connection:
        given = [_next_epoch_ms(connection) for _ in range(100)]
    assert given == sorted(set(given))


def test_a_second_run_of_project_and_period_names_the_first(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    first = new_run()
    for _ in range(2):
        with pytest.raises(RunError) as caught:
            new_run()
        assert caught.value.problem.type == "ConcurrentRun"
        for fact in (first.id, f"pid {first.owner.pid}", first.owner.host, f"{first.created_at:%Y-%m-%dT%H:%M}"):
            assert fact in caught.value.problem.message
        if first.status == "queued":
            first = store.start_run(first, snapshot)
    store.complete_run(first)
    assert new_run().id != first.id


def test_the_database_itself_allows_one_active_run(store: Store, new_run: NewRun) -> None:
    first, second = new_run("2026-01"), new_run("2026-02")
    with pytest.raises(DBAPIError), store._write() as connection:
        connection.execute(sa.text("UPDATE runs SET period = :p WHERE id = :i"), {"p": "2026-01", "i": second.id})
    assert {run.period for run in store.runs()} == {first.period, second.period}


def test_a_draft_runs_into_the_sandbox(store: Store, new_run: NewRun) -> None:
    assert new_run("2026-01", sandbox=True).sandbox
    store.redraft("close")
    assert new_run("2026-02", sandbox=True).project_status == "draft"
    with pytest.raises(RunError, match="has changed since its version 1 was activated"):
        new_run("2026-03")  # it was active, so an edit must not move its runs to the sandbox


def test_what_does_not_run(store: Store, new_run: NewRun, project_body: Body) -> None:
    def refused(**facts: Any) -> str:
        with pytest.raises(RunError) as caught:
            new_run(**facts)
        return caught.value.problem.type

    store.set_period_status("gregorian", "2026-01", "closed")
    assert refused() == "PeriodNotOpen"
    quarter = NestedPeriod.of(GREGORIAN, "2026-Q1")
    assert refused(period="2026-Q1", nested=quarter) == "PeriodNotOpen", "a month inside it is closed"
    reopened = new_run(reopen_reason="late invoice")
    assert reopened.reopen_reason == "late invoice"
    store.cancel_run(reopened)
    store.set_period_status("gregorian", "2026-01", "locked")
    assert refused(reopen_reason="late invoice") == "PeriodNotOpen"
    store.deactivate("close")
    assert refused(period="2026-03") == "ProjectNotRunnable"
    record(store, "project", "close", project_body(name="Other"))
    assert refused(period="2026-03") == "ProjectNotRunnable"
    with pytest.raises(RunError, match="no run has the id nothing"):
        store.run("nothing")


ACTIONS: dict[str, Callable[[Store, Run, Snapshot], Run]] = {
    "start": lambda store, run, snapshot: store.start_run(run, snapshot),
    "complete": lambda store, run, _: store.complete_run(run),
    "fail": lambda store, run, _: store.fail_run(run, PROBLEM),
    "cancel": lambda store, run, _: store.cancel_run(run),
    "retry": lambda store, run, _: store.retry_run(run.id),
}
PATHS: dict[str, tuple[str, ...]] = {
    "queued": (),
    "running": ("start",),
    "completed": ("start", "complete"),
    "failed": ("start", "fail"),
    "cancelled": ("start", "cancel"),
}
AFTER = {
    ("queued", "start"): "running",
    ("queued", "fail"): "failed",
    ("queued", "cancel"): "cancelled",
    ("running", "complete"): "completed",
    ("running", "fail"): "failed",
    ("running", "cancel"): "cancelled",
    ("failed", "retry"): "running",
    ("cancelled", "retry"): "running",
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("status", PATHS)
def test_every_action_in_every_status(
    store: Store, new_run: NewRun, snapshot: Snapshot, status: str, action: str
) -> None:
    run = new_run()
    for step in PATHS[status]:
        run = ACTIONS[step](store, run, snapshot)
    assert run.status == status
    expected = AFTER.get((status, action))
    if expected is None:
        with pytest.raises((StoreError, RunError)):
            ACTIONS[action](store, run, snapshot)
        assert store.run(run.id) == run
    else:
        after = ACTIONS[action](store, run, snapshot)
        assert after.status == expected and store.run(run.id) == after
        assert (after.finished_at is None) == after.is_active


def test_the_events_tell_the_story(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    run = store.start_run(new_run(), snapshot)
    store.warn_run(run, "not registered")
    store.fail_run(run, PROBLEM)
    store.complete_run(store.retry_run(run.id))
    events = store.run_events(run.id)
    assert [(event.attempt, event.event) for event in events] == [
        (1, "queued"),
        (1, "running"),
        (1, "warning"),
        (1, "failed"),
        (2, "running"),
        (2, "completed"),
    ]
    assert events[2].detail == {"message": "not registered"}
    assert events[3].detail == PROBLEM.to_json()


def test_a_failed_run_keeps_its_problem_and_how_far_it_came(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    run = store.start_run(new_run(), snapshot)
    done = OperationResult(seq=2, name="Double", type="update", rows_selected=5, duration_ms=12)
    store.record_operations(run, done)
    failed = store.fail_run(run, PROBLEM)
    assert (failed.problem, failed.last_completed_operation) == (PROBLEM.to_json(), 2)
    assert store.operation_results(run.id) == (done,)
    assert store.retry_run(run.id).problem is None


def test_a_retry_says_its_results_again_but_committed_outputs_stay(
    store: Store, new_run: NewRun, snapshot: Snapshot
) -> None:
    run = store.start_run(new_run(), snapshot)
    intent = OutputResult(seq=5, location="delta /out")
    committed = intent.model_copy(update={"rows_written": 2**40, "columns_written": ("a", "b"), "committed": True})
    store.record_output(run, intent)
    store.record_output(run, committed)
    store.fail_run(run, PROBLEM)
    again = store.retry_run(run.id)
    assert store.output_results(run.id) == (committed,)
    with pytest.raises(StoreError, match=r"output 5 .* is already committed"):
        store.record_output(again, intent)
    named = committed.model_copy(update={"dataset_id": "sales", "dataset_version": 1, "delta_version": 7})
    store.record_output(again, named)
    store.record_operations(again, OperationResult(seq=1, name="A", type="update", duration_ms=1))
    faster = OperationResult(seq=1, name="A", type="update", duration_ms=0)
    store.record_operations(again, faster)
    assert (store.output_results(run.id), store.operation_results(run.id)) == ((named,), (faster,))


def test_a_process_whose_run_was_taken_over_can_report_nothing(
    store: Store, new_run: NewRun, snapshot: Snapshot
) -> None:
    lost = store.start_run(new_run(), snapshot)
    store.fail_run(lost, PROBLEM)
    taken = store.retry_run(lost.id)
    operation = OperationResult(seq=1, name="A", type="update", duration_ms=1)
    reports: list[Callable[[], object]] = [
        lambda: store.complete_run(lost),
        lambda: store.fail_run(lost, PROBLEM),
        lambda: store.heartbeat(lost),
        lambda: store.record_operations(lost, operation),
        lambda: store.record_output(lost, OutputResult(seq=1, location="x")),
        lambda: store.warn_run(lost, "late"),
    ]
    for report in reports:
        with pytest.raises(StoreError, match="taken over by attempt 2"):
            report()
    assert store.run(lost.id) == taken


def test_a_finished_run_reports_nothing_more(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    run = store.complete_run(store.start_run(new_run(), snapshot))
    with pytest.raises(StoreError, match="is completed, so it cannot report results"):
        store.record_operations(run, OperationResult(seq=1, name="A", type="update", duration_ms=1))
    with pytest.raises(StoreError, match="no longer running"):
        store.heartbeat(run)


def test_a_retry_needs_a_snapshot_an_open_period_and_a_free_place(
    store: Store, new_run: NewRun, snapshot: Snapshot
) -> None:
    early = store.fail_run(new_run("2026-02"), PROBLEM)
    with pytest.raises(RunError, match=r"RunNotRepeatable(.|\n)*cannot be retried: it failed before it had a snapshot"):
        store.retry_run(early.id)
    failed = store.fail_run(store.start_run(new_run(), snapshot), PROBLEM)
    other = new_run()
    with pytest.raises(RunError, match=f"ConcurrentRun(.|\n)*{other.id}"):
        store.retry_run(failed.id)
    store.cancel_run(other)
    store.set_period_status("gregorian", "2026-01", "closed")
    with pytest.raises(RunError, match="PeriodNotOpen"):
        store.retry_run(failed.id)
    assert store.retry_run(failed.id, reopen_reason="late invoice").reopen_reason == "late invoice"


def test_a_retry_of_a_project_taken_out_of_use_is_refused(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    failed = store.fail_run(store.start_run(new_run(), snapshot), PROBLEM)
    store.deactivate("close")
    with pytest.raises(RunError, match="ProjectNotRunnable"):
        store.retry_run(failed.id)


def test_the_snapshot_comes_back_as_it_was(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    run = new_run()
    with pytest.raises(RunError, match=r"RunNotRepeatable(.|\n)*failed before it had a snapshot"):
        store.snapshot(run.id)
    store.start_run(run, snapshot)
    assert store.snapshot(run.id) == snapshot


@pytest.mark.parametrize("statement", ["UPDATE snapshots SET body = '{}'", "DELETE FROM snapshots"])
def test_no_one_changes_a_snapshot(store: Store, new_run: NewRun, snapshot: Snapshot, statement: str) -> None:
    run = store.start_run(new_run(), snapshot)
    with pytest.raises(StoreError, match="is already running"):
        store.start_run(run, snapshot.model_copy(update={"engine_version": "2"}))
    store.fail_run(run, PROBLEM)
    store.retry_run(run.id)
    with pytest.raises((DBAPIError, StoreError), match="snapshots are never changed"), store._write() as connection:
        connection.execute(sa.text(statement))
    assert store.snapshot(run.id) == snapshot


def test_runs_are_listed_newest_first_and_filtered(store: Store, new_run: NewRun, snapshot: Snapshot) -> None:
    first, second, third = (new_run(f"2026-0{month}") for month in (1, 2, 3))
    store.start_run(second, snapshot)
    ids = [run.id for run in store.runs()]
    assert ids == [third.id, second.id, first.id]
    assert [run.id for run in store.runs(limit=2)] == ids[:2]
    assert [run.id for run in store.runs(period="2026-01")] == [first.id]
    assert [run.id for run in store.runs(statuses=("running",))] == [second.id]
    assert store.runs(project_id="other") == ()
