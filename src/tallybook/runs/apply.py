"""apply: the files recorded as versions, said in words; active projects that a change breaks are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallybook.errors import ValidationError
from tallybook.model.state import Conflict, Json, Kind, ProjectState
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.catalog import Catalog
from tallybook.project.changes import breaking_changes, describe_changes
from tallybook.project.checked import Checked
from tallybook.runs.recording import bodies, known_datasets, record
from tallybook.runs.usage import columns_used
from tallybook.store.definitions import content_hash
from tallybook.store.store import Store


@dataclass(frozen=True)
class Change:
    """A definition that differs from what was recorded, with the version it gets."""

    kind: Kind
    id: str
    version: int
    words: tuple[str, ...]


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
    for kind, id, body in bodies(checked.definitions):
        declared = store.declared(kind, id) if store is not None else None
        if declared is not None and declared.content_hash == content_hash(body):
            continue
        latest = store.latest(kind, id) if store is not None else None
        words = describe_changes(kind, declared.body if declared else None, body)
        yield Change(kind, id, latest.version + 1 if latest else 1, tuple(words))


def apply(store: Store, checked: Checked) -> Applied:
    """Records every file. Projects may be unfinished; what they stand on may not."""
    wrong = [problem for problem in checked.problems if problem.project is None]
    if wrong:
        raise ValidationError(wrong)
    changes = differences(store, checked)
    record(store, checked.definitions)
    for change in changes:
        if change.kind == "dataset" and change.version > 1:
            _stop_broken_projects(store, checked, change)
    return Applied(changes, store.project_states())


def _stop_broken_projects(store: Store, checked: Checked, change: Change) -> None:
    for state in store.project_states():
        conflict = _conflict(store, checked, state, change) if state.status in ("active", "conflict") else None
        if conflict is not None:
            earlier = [each for each in state.conflicts if each.dataset_id != conflict.dataset_id]
            store.mark_conflict(state.project_id, [*earlier, conflict])


def _conflict(store: Store, checked: Checked, state: ProjectState, change: Change) -> Conflict | None:
    """What the new version of a dataset breaks in an active project, compared with the version it works with."""
    entry = checked.definitions.projects.get(state.project_id)
    if entry is None:
        return None
    before = _before(store, change)
    head = entry.head.model_copy(update={"input_dataset_version": state.input_dataset_version})
    bound = bind_project(head, entry.operations, before, entry.part)
    if bound.input is None or change.id not in _datasets(bound):
        return None
    is_input = bound.input.dataset.id == change.id
    old_version = bound.input.dataset.version if is_input else change.version - 1
    changed = breaking_changes(
        _body(store, change.id, old_version), _body(store, change.id, change.version), columns_used(bound, change.id)
    )
    if not changed:
        return None
    return Conflict(dataset_id=change.id, from_version=old_version, to_version=change.version, changes=changed)


def _before(store: Store, change: Change) -> Catalog:
    """The datasets as they were before the change."""
    catalog = known_datasets(store).catalog
    catalog.versions[change.id] = {
        version: dataset for version, dataset in catalog.versions[change.id].items() if version < change.version
    }
    return catalog


def _datasets(bound: BoundProject) -> set[str]:
    assert bound.input is not None
    return {bound.input.dataset.id, *(source.dataset.id for step in bound.steps for source in step.sources)}


def _body(store: Store, dataset_id: str, version: int) -> Json:
    definition = store.definition("dataset", dataset_id, version)
    assert definition is not None
    return definition.body


def activate(store: Store, checked: Checked, project_id: str) -> ProjectState:
    """Records the files and makes a valid project count, pinned to the newest version of its input dataset."""
    apply(store, checked)
    entry = checked.definitions.projects[project_id]
    catalog = known_datasets(store).catalog
    bound = bind_project(entry.head, entry.operations, catalog, entry.part)
    if bound.problems or bound.input is None:
        raise ValidationError(bound.problems)
    state = store.project_state(project_id)
    assert state is not None
    if state.status == "inactive":
        store.redraft(project_id)
    return store.activate(project_id, state.version, bound.input.dataset.version)
