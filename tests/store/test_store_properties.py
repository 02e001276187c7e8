"""Whatever is done in whatever order: versions never change, one active run, snapshots never change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.engine import URL
from tests.store.kit import mark_conflict, record

from tallybook.errors import Problem, RunError, StoreError
from tallybook.model.run import Run, Snapshot
from tallybook.model.state import ColumnChange, Conflict, Definition, ProjectStatus
from tallybook.store.store import Store

PERIODS = st.sampled_from(["2026-01", "2026-02"])
PROBLEM = Problem("DataNotFound", "nothing there")
BROKEN = Conflict(
    dataset_id="orders",
    from_version=1,
    to_version=2,
    changes=(ColumnChange(column="tier", change="removed", operations=(1,)),),
)


class StoreMachine(RuleBasedStateMachine):
    """Edits, activations and runs, with a small model of what the store must say afterwards."""

    runs = Bundle("runs")

    def __init__(
        self, url: URL, project_body: Callable[..., Any], dataset_body: Callable[..., Any], snapshot: Snapshot
    ) -> None:
        super().__init__()
        self.store = Store.open(url)
        self.project_body, self.dataset_body, self.snapshot_like = project_body, dataset_body, snapshot
        self.made: dict[tuple[str, int], Definition] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.status: ProjectStatus = "draft"
        self.was_active = False
        self.selector = "amount > 0"
        record(self.store, "dataset", "orders", dataset_body())
        record(self.store, "project", "close", project_body())

    def teardown(self) -> None:
        self.store.close()

    @property
    def version(self) -> int:
        state = self.store.project_state("close")
        assert state is not None
        return state.version

    @rule(column=st.sampled_from(["tier", "level"]))
    def edit_dataset(self, column: str) -> None:
        record(self.store, "dataset", "orders", self.dataset_body(column))

    @rule(selector=st.sampled_from(["amount > 0", "amount > 1"]), name=st.sampled_from(["Close", "Month close"]))
    def edit_project(self, selector: str, name: str) -> None:
        operation = self.project_body()["operations"][0] | {"selector": selector}
        record(self.store, "project", "close", self.project_body(name=name, operations=[operation]))
        if selector != self.selector:
            self.status = "draft"
        self.selector = selector

    def attempt(self, action: Callable[[], object], allowed: bool, after: ProjectStatus) -> None:
        if allowed:
            action()
            self.status = after
        else:
            with pytest.raises(StoreError):
                action()

    @rule()
    def activate(self) -> None:
        allowed = self.status in ("draft", "active", "conflict")
        self.was_active = self.was_active or allowed
        self.attempt(lambda: self.store.activate("close", self.version, 1), allowed, "active")

    @rule()
    def deactivate(self) -> None:
        movable = self.status in ("active", "conflict")
        if movable and any(run.is_active for run in self.store.runs()):
            with pytest.raises(RunError, match="cannot be deactivated while run"):
                self.store.deactivate("close")
        else:
            self.attempt(lambda: self.store.deactivate("close"), movable, "inactive")

    @rule()
    def break_it(self) -> None:
        allowed = self.status in ("active", "conflict")
        self.attempt(lambda: mark_conflict(self.store, "close", [BROKEN]), allowed, "conflict")

    @rule()
    def stay(self) -> None:
        self.attempt(lambda: self.store.stay_pinned("close"), self.status == "conflict", "active")

    @rule(target=runs, period=PERIODS)
    def create_run(self, period: str) -> Any:
        busy = [run for run in self.store.runs(period=period) if run.is_active]
        try:
            run = self.store.create_run("close", self.version, period, calendar_id="c", as_of=date(2026, 1, 1))
        except RunError as error:
            runnable = self.status == "active" or (self.status == "draft" and not self.was_active)
            assert error.problem.type == ("ConcurrentRun" if runnable else "ProjectNotRunnable")
            assert busy or not runnable
            return multiple()
        assert not busy and run.sandbox == (self.status == "draft")
        return run

    @rule(target=runs, run=consumes(runs), mark=st.integers())
    def start(self, run: Run, mark: int) -> Run:
        snapshot = self.snapshot_like.model_copy(update={"engine_version": str(mark)})
        try:
            started = self.store.start_run(run, snapshot)
        except StoreError:
            assert run.status != "queued"
            return run
        assert run.id not in self.snapshots
        self.snapshots[run.id] = snapshot
        return started

    @rule(target=runs, run=consumes(runs), end=st.sampled_from(["complete", "fail", "cancel", "retry"]))
    def move(self, run: Run, end: str) -> Run:
        moves: dict[str, Callable[[], Run]] = {
            "complete": lambda: self.store.complete_run(run),
            "fail": lambda: self.store.fail_run(run, PROBLEM),
            "cancel": lambda: self.store.cancel_run(run),
            "retry": lambda: self.store.retry_run(run.id),
        }
        try:
            return moves[end]()
        except (StoreError, RunError):
            return run

    @rule(run=runs)
    def register(self, run: Run) -> None:
        current = self.store.run(run.id)
        owned = current.is_active and current.attempt == run.attempt
        before = self.store.versions("dataset", "sales")
        try:
            self.store.register_dataset("sales", self.dataset_body("a"), run, 1, {"run": run.id})
        except RunError as error:
            expected = "ProjectNotRunnable" if owned else "RunSuperseded"
            assert error.problem.type == expected and not (owned and run.project_status == self.status)
            assert self.store.versions("dataset", "sales") == before
        else:
            assert owned and run.project_status == self.status

    @invariant()
    def versions_never_change(self) -> None:
        for kind, id in (("dataset", "orders"), ("dataset", "sales"), ("project", "close")):
            versions = self.store.versions(kind, id)
            assert [each.version for each in versions] == list(range(1, len(versions) + 1))
            for each in versions:
                assert self.made.setdefault((f"{kind} {id}", each.version), each) == each

    @invariant()
    def the_status_is_the_models(self) -> None:
        state = self.store.project_state("close")
        assert state is not None and state.status == self.status
        assert (state.input_dataset_version is None) == (self.status in ("draft", "inactive"))

    @invariant()
    def at_most_one_run_is_active(self) -> None:
        runs = self.store.runs()
        active = Counter(run.period for run in runs if run.is_active)
        assert all(count == 1 for count in active.values())
        assert len({run.id_epoch_ms for run in runs}) == len(runs)

    @invariant()
    def snapshots_never_change(self) -> None:
        for run_id, snapshot in self.snapshots.items():
            assert self.store.snapshot(run_id) == snapshot


def test_any_sequence_of_edits_activations_and_runs(
    fresh_url: Callable[[], URL],
    project_body: Callable[..., Any],
    dataset_body: Callable[..., Any],
    snapshot: Snapshot,
) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(fresh_url(), project_body, dataset_body, snapshot),
        settings=settings(
            max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
