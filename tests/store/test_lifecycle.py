"""Projects and periods: every change of state, every refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from tests.store.kit import mark_conflict, record, record_all

from tallybook.errors import RunError, StoreError
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import GREGORIAN, Calendar, ListedPeriod, PeriodStatus
from tallybook.model.state import ColumnChange, Conflict, ProjectStatus
from tallybook.store.store import Store

Body = Callable[..., dict[str, Any]]
BROKEN = Conflict(
    dataset_id="orders",
    from_version=1,
    to_version=2,
    changes=(ColumnChange(column="tier", change="string → integer", operations=(1, 4)),),
)
ELSEWHERE = BROKEN.model_copy(update={"dataset_id": "customers"})


@pytest.fixture
def project(store: Store, project_body: Body, dataset_body: Body) -> Callable[[ProjectStatus], None]:
    """Brings the project `close` to a status."""
    record_all(store, [("dataset", "orders", dataset_body()), ("project", "close", project_body())])

    def bring(status: ProjectStatus) -> None:
        if status != "draft":
            store.activate("close", 1, 1)
        if status == "inactive":
            store.deactivate("close")
        if status == "conflict":
            mark_conflict(store, "close", [BROKEN])

    return bring


ACTIONS: dict[str, Callable[[Store], object]] = {
    "activate": lambda store: store.activate("close", 1, 1),
    "deactivate": lambda store: store.deactivate("close"),
    "redraft": lambda store: store.redraft("close"),
    "mark_conflict": lambda store: mark_conflict(store, "close", [BROKEN]),
    "stay_pinned": lambda store: store.stay_pinned("close"),
}
AFTER = {
    ("draft", "activate"): "active",
    ("active", "activate"): "active",
    ("active", "deactivate"): "inactive",
    ("active", "redraft"): "draft",
    ("active", "mark_conflict"): "conflict",
    ("inactive", "redraft"): "draft",
    ("conflict", "activate"): "active",
    ("conflict", "deactivate"): "inactive",
    ("conflict", "redraft"): "draft",
    ("conflict", "mark_conflict"): "conflict",
    ("conflict", "stay_pinned"): "active",
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("status", ["draft", "active", "inactive", "conflict"])
def test_every_action_in_every_status(store: Store, project: Callable[[str], None], status: str, action: str) -> None:
    project(status)
    before = store.project_state("close")
    expected = AFTER.get((status, action))
    if expected is None:
        with pytest.raises(StoreError, match=f"project 'close' is (already )?{status}"):
            ACTIONS[action](store)
        assert store.project_state("close") == before
    else:
        ACTIONS[action](store)
        after = store.project_state("close")
        assert after is not None and after.status == expected


def test_a_recorded_project_begins_as_draft(store: Store, project_body: Body) -> None:
    assert store.project_state("close") is None
    record(store, "project", "close", project_body())
    state = store.project_state("close")
    assert state is not None and (state.status, state.version, state.input_dataset_version) == ("draft", 1, None)
    assert store.project_states() == (state,)


def test_activation_pins_the_input_version(store: Store, project: Callable[[str], None], dataset_body: Body) -> None:
    project("active")
    record(store, "dataset", "orders", dataset_body("other"))
    state = store.activate("close", 1, 2)
    assert (state.input_dataset_version, state.reviewed_dataset_version) == (2, 2)
    assert store.deactivate("close").input_dataset_version is None


def test_activation_needs_the_dataset_version_and_the_projects_newest(
    store: Store, project: Callable[[str], None], project_body: Body
) -> None:
    project("draft")
    with pytest.raises(RunError, match="dataset 'orders' has no version 2 to pin"):
        store.activate("close", 1, 2)
    record(store, "project", "close", project_body(name="Other"))
    with pytest.raises(RunError, match="is at version 2 now, not 1"):
        store.activate("close", 1, 1)
    with pytest.raises(RunError, match="project 'unknown' is not recorded"):
        store.activate("unknown", 1, 1)


@pytest.mark.parametrize("status", ["draft", "active", "inactive", "conflict"])
def test_a_structural_change_makes_a_draft(
    store: Store, project: Callable[[str], None], project_body: Body, status: str
) -> None:
    project(status)
    record(store, "project", "close", project_body(input_dataset_id="other"))
    state = store.project_state("close")
    assert state is not None and (state.status, state.version) == ("draft", 2)
    assert (state.input_dataset_version, state.conflicts) == (None, ())


@pytest.mark.parametrize("status", ["draft", "active", "inactive", "conflict"])
def test_a_change_of_name_keeps_the_status(
    store: Store, project: Callable[[str], None], project_body: Body, status: str
) -> None:
    project(status)
    before = store.project_state("close")
    record(store, "project", "close", project_body(name="Other", description="words"))
    state = store.project_state("close")
    assert before is not None and state is not None and (state.status, state.version) == (status, 2)
    assert (state.input_dataset_version, state.conflicts) == (before.input_dataset_version, before.conflicts)


def test_reordering_an_active_project_makes_a_new_draft_version(
    store: Store, project: Callable[[str], None], project_body: Body
) -> None:
    first = project_body()["operations"][0]
    second = first | {"seq": 2, "name": "Second", "selector": "amount < 0"}
    record(store, "project", "two", project_body(operations=[first, second]))
    project("draft")
    store.activate("two", 1, 1)
    recorded = record(store, "project", "two", project_body(operations=[first | {"seq": 2}, second | {"seq": 1}]))
    state = store.project_state("two")
    assert (recorded.version, recorded.new) == (2, True)
    assert state is not None and state.status == "draft"


def test_a_conflict_says_what_broke_until_it_is_settled(store: Store, project: Callable[[str], None]) -> None:
    project("conflict")
    state = store.project_state("close")
    assert state is not None and state.conflicts == (BROKEN,)
    settled = store.stay_pinned("close")
    assert (settled.input_dataset_version, settled.reviewed_dataset_version, settled.conflicts) == (1, 2, ())


def test_only_the_input_dataset_can_be_stayed_on(store: Store, project: Callable[[str], None]) -> None:
    project("active")
    mark_conflict(store, "close", [BROKEN, ELSEWHERE])
    with pytest.raises(StoreError, match="cannot stay on a version of customers"):
        store.stay_pinned("close")
    state = store.project_state("close")
    assert state is not None and state.conflicts == (BROKEN, ELSEWHERE)


def test_periods_go_one_way(store: Store) -> None:
    assert store.period_status("gregorian", "2026-01") == "open"
    with pytest.raises(StoreError, match="period 2026-01 is open and cannot become locked") as error:
        store.set_period_status("gregorian", "2026-01", "locked")
    assert error.value.hint == "close it first: `tallybook period 2026-01 --close`"
    store.set_period_status("gregorian", "2026-01", "closed")
    with pytest.raises(StoreError, match="period 2026-01 is closed and cannot become open"):
        store.set_period_status("gregorian", "2026-01", "open")
    with pytest.raises(StoreError, match="period 2026-01 is already closed"):
        store.set_period_status("gregorian", "2026-01", "closed")
    store.set_period_status("gregorian", "2026-01", "locked")
    with pytest.raises(StoreError, match="locked is final"):
        store.set_period_status("gregorian", "2026-01", "closed")
    assert store.period_statuses("gregorian") == {"2026-01": "locked"}
    assert store.period_status("fiscal", "2026-01") == "open"


def test_a_calendar_says_how_a_period_begins(store: Store) -> None:
    listed = ListedPeriod(
        identifier="P1", level="month", start_date=date(2026, 1, 1), end_date=date(2026, 1, 31), status="closed"
    )
    first = NestedPeriod.of(Calendar(id="fiscal", periods=(listed,)), "P1")
    assert store.period_status("fiscal", "P1", first) == "closed"
    assert store.set_period_status("fiscal", "P1", "locked", first) == "locked"
    assert store.period_status("fiscal", "P1", first) == "locked"


def test_a_period_has_at_least_the_status_of_those_around_it(store: Store) -> None:
    def status(identifier: str) -> str:
        return store.period_status("gregorian", identifier, NestedPeriod.of(GREGORIAN, identifier))

    def change(identifier: str, to: PeriodStatus) -> str:
        return store.set_period_status("gregorian", identifier, to, NestedPeriod.of(GREGORIAN, identifier))

    change("2026-01", "closed")
    assert [status(name) for name in ("2026-01", "2026-01-31")] == ["closed", "closed"]
    assert [status(name) for name in ("2026-02", "2026-Q1")] == ["open", "open"]
    change("2026-Q1", "closed")
    assert [status(name) for name in ("2026-02", "2026-04", "2026")] == ["closed", "open", "open"]
    with pytest.raises(StoreError, match="period 2026-03 is already closed"):
        change("2026-03", "closed")
    assert change("2026-03", "locked") == "locked"
    assert status("2026-Q1") == "closed" and change("2026-Q1", "locked") == "locked"
    assert [status(name) for name in ("2026-02", "2026-02-01", "2026-04")] == ["locked", "locked", "open"]
    runs = NestedPeriod.of(GREGORIAN, "2026").status_for_runs(store.period_statuses("gregorian"))
    assert runs[0] == "locked" and runs[1] in ("2026-Q1", "2026-03")


@pytest.mark.parametrize("closing", ["2026-02", "2026-Q1", "2026"])
def test_a_period_does_not_close_while_a_run_around_or_inside_it_is_active(
    store: Store, project: Callable[[str], None], closing: str
) -> None:
    project("active")
    store.create_run("close", 1, "2026-Q1", calendar_id="gregorian", as_of=date(2026, 1, 1))
    with pytest.raises(RunError, match=f"period {closing} cannot become closed while run"):
        store.set_period_status("gregorian", closing, "closed", NestedPeriod.of(GREGORIAN, closing))
    april = NestedPeriod.of(GREGORIAN, "2026-04")
    assert store.set_period_status("gregorian", "2026-04", "closed", april) == "closed"
