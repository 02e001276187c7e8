"""Finds the conflicts of active projects with new dataset versions: the column, the change and the operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from tallybook.model.state import ColumnChange, Conflict, Json, ProjectState
from tallybook.operations.flow import used_columns
from tallybook.project.bind import bind_project
from tallybook.project.changes import breaking_changes, breaking_columns
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project
from tallybook.project.recorded import Changes

Used = Mapping[int, set[str]]
"""The columns that each operation uses, by seq."""


def conflicts_of(state: ProjectState, changes: Changes) -> tuple[Conflict, ...]:
    """Returns all conflicts of a project after changes: existing ones, and those of new dataset versions."""
    if state.status not in ("active", "conflict"):
        return state.conflicts
    project = changes.project_body(state.project_id)
    current = [*_of_input(project, state, changes), *_of_others(project, state, changes)]
    fresh = [conflict for conflict in current if conflict not in state.conflicts]
    again = {conflict.dataset_id for conflict in fresh}
    return (*(conflict for conflict in state.conflicts if conflict.dataset_id not in again), *fresh)


def _of_input(project: Json, state: ProjectState, changes: Changes) -> Iterator[Conflict]:
    """Compares the input dataset with its pinned version, except for changes settled by `--stay-pinned`. A version
    written in the project is never in conflict."""
    id, pinned = project["input_dataset_id"], state.input_dataset_version
    if project.get("input_dataset_version") is not None or pinned is None:
        return
    bodies = changes.dataset_bodies(id)
    latest = max(bodies)

    def used() -> Used:
        return _columns_used(project, state, changes, id, pinned)

    broken = _broken(bodies[pinned], bodies[latest], used)
    reviewed = bodies[state.reviewed_dataset_version or pinned]
    settled = {change.column for change in _broken(bodies[pinned], reviewed, used)} if broken else set()
    unsettled = tuple(change for change in broken if change.column not in settled)
    if unsettled:
        yield Conflict(dataset_id=id, from_version=pinned, to_version=latest, changes=unsettled)


def _of_others(project: Json, state: ProjectState, changes: Changes) -> Iterator[Conflict]:
    """Compares datasets that are joined, looked up or appended at their newest version."""
    for id, version in changes.changed_datasets.items():
        bodies = changes.dataset_bodies(id)
        if id == project["input_dataset_id"] or version - 1 not in bodies:
            continue

        def used(id: str = id, version: int = version) -> Used:
            return _columns_used(project, state, changes, id, version)

        broken = _broken(bodies[version - 1], bodies[version], used)
        if broken:
            yield Conflict(dataset_id=id, from_version=version - 1, to_version=version, changes=broken)


def _broken(old: Json, new: Json, used: Callable[[], Used]) -> tuple[ColumnChange, ...]:
    """Returns the breaking changes of used columns. Computes the used columns only if a column has changed."""
    return breaking_changes(old, new, used()) if breaking_columns(old, new) else ()


def _columns_used(project: Json, state: ProjectState, changes: Changes, dataset_id: str, version: int) -> Used:
    """Returns the columns of a dataset version that a project used before the datasets changed; none if its input is
    disabled."""
    recorded = Project.model_validate({**project, "version": state.version}, strict=False)
    pinned = recorded.model_copy(update={"input_dataset_version": state.input_dataset_version})
    bound = bind_project(pinned, recorded.operations, _as_before(changes.datasets, changes.changed_datasets))
    return {} if bound.input is None else used_columns(bound.steps, bound.input, dataset_id, version)


def _as_before(datasets: DatasetVersions, changed: Mapping[str, int]) -> DatasetVersions:
    """Each new version with the columns of the one before. Projects still fit these, and the number of the version
    tells a dataset that follows the newest version from one that is pinned."""
    versions = dict(datasets.versions)
    for id, version in changed.items():
        older = {number: dataset for number, dataset in versions[id].items() if number < version}
        if older:
            versions[id] = older | {version: older[max(older)].model_copy(update={"version": version})}
    return DatasetVersions(MappingProxyType(versions))
