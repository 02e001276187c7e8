"""Which status may follow which, what may run, and what counts as a structural change."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tallybook.errors import RunError, StoreError
from tallybook.model.state import ProjectState
from tallybook.project.lifecycle import (
    PERIOD_MOVES,
    PROJECT_MOVES,
    RUN_MOVES,
    check_move,
    check_period_runs,
    check_project_runs,
    is_structural_change,
    used_selectors,
)

ALLOWED = {
    "project": "draft>active active>active active>inactive active>draft active>conflict inactive>draft "
    "conflict>active conflict>inactive conflict>draft conflict>conflict",
    "run": "queued>running queued>failed queued>cancelled running>completed running>failed running>cancelled "
    "failed>running cancelled>running",
    "period": "open>closed closed>locked",
}
MOVES: dict[str, Any] = {"project": PROJECT_MOVES, "run": RUN_MOVES, "period": PERIOD_MOVES}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [(kind, old, new) for kind, moves in MOVES.items() for old, new in itertools.product(moves, moves)],
)
def test_every_pair_of_statuses_is_allowed_or_refused(kind: str, old: str, new: str) -> None:
    if f"{old}>{new}" in ALLOWED[kind].split():
        check_move("it", MOVES[kind], old, new)
    else:
        message = f"it is already {old}" if old == new else f"it is {old} and cannot become {new}"
        with pytest.raises(StoreError, match=message):
            check_move("it", MOVES[kind], old, new)


def test_a_refusal_names_the_choices() -> None:
    with pytest.raises(StoreError, match="from queued it can become: running, failed, cancelled"):
        check_move("run 7", RUN_MOVES, "queued", "completed")
    with pytest.raises(StoreError, match="locked is final"):
        check_move("period 2026", PERIOD_MOVES, "locked", "open")


@pytest.mark.parametrize(
    ("status", "runs"), [("draft", True), ("active", True), ("inactive", False), ("conflict", False)]
)
def test_which_projects_run(status: Any, runs: bool) -> None:
    state = ProjectState(project_id="close", status=status, version=1)
    if runs:
        check_project_runs(state)
        return
    for draft in (False, True):
        with pytest.raises(RunError) as caught:
            check_project_runs(state, draft=draft)
        assert caught.value.problem.type == "ProjectNotRunnable"


def test_a_draft_that_was_active_runs_only_as_a_draft() -> None:
    state = ProjectState(project_id="close", status="draft", version=3, active_version=1)
    with pytest.raises(RunError) as caught:
        check_project_runs(state)
    problem = caught.value.problem
    assert problem.message == "project 'close' has changed since its version 1 was activated"
    assert problem.hint == "activate it with `tallybook activate close`, or run it in the sandbox with --draft"
    check_project_runs(state, draft=True)


@pytest.mark.parametrize(
    ("status", "reason", "runs"),
    [
        ("open", None, True),
        ("closed", None, False),
        ("closed", "  ", False),
        ("closed", "late invoice", True),
        ("locked", "late invoice", False),
    ],
)
def test_which_periods_run(status: Any, reason: str | None, runs: bool) -> None:
    if runs:
        check_period_runs("2026-01", status, reason)
        return
    with pytest.raises(RunError) as caught:
        check_period_runs("2026-01", status, reason)
    assert caught.value.problem.type == "PeriodNotOpen"


def project(**changes: Any) -> dict[str, Any]:
    operations = [
        {"seq": 1, "name": "a", "type": "delete", "selector": "{{big}}"},
        {"seq": 2, "name": "b", "type": "output", "arguments": {"destination": {"location": "x/{{YYYY}}.parquet"}}},
    ]
    selectors = {"big": "{{base}} AND x > 1", "base": "y > 0", "YYYY": "TRUE", "unused": "z > 0"}
    return {
        "id": "p",
        "name": "P",
        "input_dataset_id": "d",
        "selectors": selectors,
        "operations": operations,
    } | changes


def renamed(operation: dict[str, Any]) -> dict[str, Any]:
    return operation | {"name": "other", "description": "words"}


@pytest.mark.parametrize(
    ("changes", "structural"),
    [
        ({"name": "Q"}, False),
        ({"description": "about"}, False),
        ({"operations": [renamed(each) for each in project()["operations"]]}, False),
        ({"operations": project()["operations"][::-1]}, False),
        ({"selectors": project()["selectors"] | {"unused": "z > 9"}}, False),
        ({"selectors": project()["selectors"] | {"YYYY": "FALSE"}}, False),
        ({"selectors": project()["selectors"] | {"big": "x > 2"}}, True),
        ({"selectors": project()["selectors"] | {"base": "y > 9"}}, True),
        ({"input_dataset_id": "e"}, True),
        ({"input_dataset_version": 3}, True),
        ({"resolver_overrides": {"d": "r"}}, True),
        ({"operations": project()["operations"][:1]}, True),
        ({"operations": [each | {"seq": 3 - each["seq"]} for each in project()["operations"]]}, True),
        ({"operations": [project()["operations"][0] | {"selector": "x"}, project()["operations"][1]]}, True),
    ],
)
def test_structural_changes(changes: dict[str, Any], structural: bool) -> None:
    assert is_structural_change(project(), project(**changes)) is structural
    assert is_structural_change(project(**changes), project()) is structural


def test_used_selectors_follow_selectors_but_not_path_templates() -> None:
    assert used_selectors(project()) == {"big", "base"}


def test_used_selectors_survive_a_cycle() -> None:
    body = project(selectors={"big": "{{base}}", "base": "{{ big }}"})
    assert used_selectors(body) == {"big", "base"}


def test_a_source_selector_uses_selectors_too() -> None:
    append = {"seq": 1, "name": "a", "type": "append", "arguments": {"source_selector": "{{only_here}}"}}
    assert used_selectors(project(operations=[append])) == {"only_here"}
