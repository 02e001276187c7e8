"""Computes what recording the files changes: a pure function of the recorded definitions and the files.

`apply`, `activate` and `run` save the changes. `plan` and a dry run look at them and throw them away. A change can
break an active project: a conflict names the column, the change and the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tallybook.model.state import ColumnChange, Conflict, Json, Kind, ProjectState
from tallybook.operations.flow import used_columns
from tallybook.project.bind import bind_project
from tallybook.project.changes import breaking_changes, breaking_columns
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.lifecycle import UNPINNED, is_structural_change
from tallybook.project.load import Definitions
from tallybook.project.model import Project
from tallybook.project.recorded import Changes, NewVersion, Recorded, body_of, content_hash, without_version

Body = tuple[Kind, str, Json]
Used = Mapping[int, set[str]]
"""The columns that each operation uses, by seq."""


def changes(recorded: Recorded, definitions: Definitions) -> Changes:
    """What recording the files changes: new versions, and the states of projects, conflicts with datasets included."""
    changed = changes_of(recorded, bodies(definitions))
    return replace(changed, states=tuple(_with_conflicts(changed, state) for state in changed.states))


def changes_of(recorded: Recorded, bodies: Iterable[Body]) -> Changes:
    """The new versions of definitions, and the states of projects as far as their own text decides them."""
    versions = tuple(_new_versions(recorded, bodies))
    states = dict(recorded.states)
    for new in versions:
        if new.kind == "project":
            states[new.id] = _next_state(states.get(new.id), new)
    return Changes(recorded, versions, tuple(states[id] for id in sorted(states)))


def _new_versions(recorded: Recorded, bodies: Iterable[Body]) -> Iterator[NewVersion]:
    for kind, id, body in bodies:
        declared = recorded.declared.get((kind, id))
        if declared is not None and declared.content_hash == content_hash(body):
            continue
        version = recorded.latest.get((kind, id), 0) + 1
        yield NewVersion(kind, id, version, without_version(body), declared.body if declared else None)


def _next_state(state: ProjectState | None, new: NewVersion) -> ProjectState:
    """A new project is a draft, and so is one whose structure has changed."""
    if state is None:
        return ProjectState(project_id=new.id, status="draft", version=new.version)
    update: dict[str, object] = {"version": new.version}
    if state.status != "draft" and new.before is not None and is_structural_change(new.before, new.body):
        update |= {"status": "draft", **UNPINNED}
    return state.model_copy(update=update)


def _with_conflicts(changed: Changes, state: ProjectState) -> ProjectState:
    conflicts = _conflicts_of(state, changed)
    if conflicts == state.conflicts:
        return state
    return state.model_copy(update={"status": "conflict", "conflicts": conflicts})


def bodies(definitions: Definitions) -> Iterator[Body]:
    """Everything the files define that could be read."""
    for calendar in definitions.calendars.values():
        yield "calendar", calendar.entity.id, body_of(calendar.entity)
    for datasource in definitions.datasources.values():
        yield "datasource", datasource.entity.id, body_of(datasource.entity)
    for resolver in definitions.resolvers.values():
        yield "resolver", resolver.entity.id, body_of(resolver.entity)
    for dataset in definitions.datasets.values():
        yield "dataset", dataset.entity.id, body_of(dataset.entity)
    for id, project in definitions.projects.items():
        if project.project is not None:
            yield "project", id, body_of(project.project)


def _conflicts_of(state: ProjectState, changes: Changes) -> tuple[Conflict, ...]:
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
