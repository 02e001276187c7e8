"""Active projects that a new version of a dataset breaks: which column, what change, which operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tallybook.model.dataset import Dataset
from tallybook.model.state import ColumnChange, Conflict, ProjectState
from tallybook.operations.flow import used_columns
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.catalog import Catalog
from tallybook.project.changes import breaking_changes
from tallybook.project.model import Project
from tallybook.runs.recording import body_of, known_datasets
from tallybook.store.store import Store


def stop_broken_projects(store: Store, changed: Mapping[str, int]) -> None:
    """Puts them in conflict. `changed` are the datasets that have just got a new version, and that version."""
    catalog = known_datasets(store).catalog
    for state in store.project_states():
        conflicts = conflicts_of(store, state, catalog, changed)
        if conflicts != state.conflicts:
            store.mark_conflict(state.project_id, conflicts)


def conflicts_of(
    store: Store, state: ProjectState, catalog: Catalog, changed: Mapping[str, int]
) -> tuple[Conflict, ...]:
    """All conflicts of a recorded project, those it has and those the changed datasets of the catalog bring."""
    if state.status not in ("active", "conflict"):
        return state.conflicts
    unchanged = _as_before(catalog, changed)
    project = _recorded(store, state)
    found = [
        *_of_input(project, state, catalog, unchanged),
        *_of_others(project, state, catalog, unchanged, changed),
    ]
    fresh = [conflict for conflict in found if conflict not in state.conflicts]
    again = {conflict.dataset_id for conflict in fresh}
    return (*(conflict for conflict in state.conflicts if conflict.dataset_id not in again), *fresh)


def _as_before(catalog: Catalog, changed: Mapping[str, int]) -> Catalog:
    """Each new version with the columns of the one before: projects still fit, and what follows the newest version is
    told from what is pinned by the number it gets."""
    versions = dict(catalog.versions)
    for id, version in changed.items():
        older = {number: dataset for number, dataset in versions[id].items() if number < version}
        if older:
            versions[id] = older | {version: older[max(older)].model_copy(update={"version": version})}
    return Catalog(versions)


def _recorded(store: Store, state: ProjectState) -> Project:
    definition = store.definition("project", state.project_id, state.version)
    assert definition is not None, "a project's state names one of its versions"
    return Project.model_validate({**definition.body, "version": state.version}, strict=False)


def _bound(project: Project, state: ProjectState, catalog: Catalog) -> BoundProject:
    pinned = project.model_copy(update={"input_dataset_version": state.input_dataset_version})
    return bind_project(pinned, project.operations, catalog)


def _used(bound: BoundProject, dataset_id: str, version: int) -> dict[int, set[str]]:
    assert bound.input is not None
    return used_columns(bound.steps, bound.input, dataset_id, version)


def _of_input(project: Project, state: ProjectState, catalog: Catalog, unchanged: Catalog) -> Iterator[Conflict]:
    """Against the pinned version, without what was settled by staying on it. A version written down is a decision."""
    id, pinned = project.input_dataset_id, state.input_dataset_version
    latest = max(catalog.versions[id])
    if project.input_dataset_version is not None or pinned is None:
        return
    used = _used(_bound(project, state, unchanged), id, pinned)
    of_version = catalog.versions[id]
    reviewed = of_version[state.reviewed_dataset_version or pinned]
    settled = {each.column for each in _broken(of_version[pinned], reviewed, used)}
    found = _broken(of_version[pinned], of_version[latest], used)
    changes = tuple(each for each in found if each.column not in settled)
    if changes:
        yield Conflict(dataset_id=id, from_version=pinned, to_version=latest, changes=changes)


def _of_others(
    project: Project, state: ProjectState, catalog: Catalog, unchanged: Catalog, changed: Mapping[str, int]
) -> Iterator[Conflict]:
    """Of datasets that are joined, looked up or appended at their newest version."""
    for id, version in changed.items():
        if id == project.input_dataset_id or version - 1 not in catalog.versions[id]:
            continue
        used = _used(_bound(project, state, unchanged), id, version)
        changes = _broken(unchanged.versions[id][version], catalog.versions[id][version], used)
        if changes:
            yield Conflict(dataset_id=id, from_version=version - 1, to_version=version, changes=changes)


def _broken(old: Dataset, new: Dataset, used: Mapping[int, set[str]]) -> tuple[ColumnChange, ...]:
    return breaking_changes(body_of(old), body_of(new), used)
