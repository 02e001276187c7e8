"""apply: the files recorded as versions, said in words; active projects that a change breaks are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallybook.errors import ValidationError
from tallybook.model.state import Kind, ProjectState
from tallybook.project.changes import describe_changes
from tallybook.project.checked import Checked
from tallybook.runs.conflicts import stop_broken_projects
from tallybook.runs.planner import bind_recorded, valid_project
from tallybook.runs.recording import bodies, known_datasets, record
from tallybook.store.definitions import content_hash
from tallybook.store.store import Store


@dataclass(frozen=True)
class Change:
    """A definition that differs from what was recorded, with the version it gets."""

    kind: Kind
    id: str
    version: int
    words: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class Applied:
    """What applying did, or would do."""

    changes: tuple[Change, ...]
    states: tuple[ProjectState, ...]
    """Of all projects, after it."""


def differences(store: Store | None, checked: Checked) -> tuple[Change, ...]:
    """What `apply` would record."""
    return tuple(_differences(store, checked))


def _differences(store: Store | None, checked: Checked) -> Iterator[Change]:
    recorded = store.all_declared() if store is not None else {}
    for kind, id, body in bodies(checked.definitions):
        declared = recorded.get((kind, id))
        if declared is not None and declared.content_hash == content_hash(body):
            continue
        latest = store.latest(kind, id) if store is not None else None
        words = describe_changes(kind, declared.body if declared else None, body)
        yield Change(kind, id, latest.version + 1 if latest else 1, tuple(words), declared is None)


def apply(store: Store, checked: Checked) -> Applied:
    """Records every file. Projects may be unfinished; what they stand on may not."""
    wrong = [problem for problem in checked.problems if problem.project is None]
    if wrong:
        raise ValidationError(wrong)
    changes = differences(store, checked)
    if changes:
        record(store, checked.definitions)
    stop_broken_projects(store, {change.id: change.version for change in changes if change.kind == "dataset"})
    return Applied(changes, store.project_states())


def activate(store: Store, checked: Checked, project_id: str) -> ProjectState:
    """Records the files and makes a valid project count, pinned to the newest version of its input dataset."""
    apply(store, checked)
    entry = valid_project(checked, project_id)
    bound = bind_recorded(checked, entry, entry.head, known_datasets(store).catalog)
    assert bound.input is not None, "a project without problems has its input"
    state = store.project_state(project_id)
    assert state is not None
    if state.status == "inactive":
        store.redraft(project_id)
    return store.activate(project_id, state.version, bound.input.dataset.version)
