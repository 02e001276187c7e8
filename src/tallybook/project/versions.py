"""Computes what recording the files changes: a pure function of the recorded definitions and the files.

`apply`, `activate` and `run` save the changes. `plan` and a dry run look at them and throw them away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tallybook.model.state import Json, Kind, ProjectState
from tallybook.project.changes import describe_changes
from tallybook.project.conflicts import conflicts_of
from tallybook.project.lifecycle import UNPINNED, is_structural_change
from tallybook.project.load import Definitions
from tallybook.project.recorded import Changes, NewVersion, Recorded, body_of, content_hash, without_version

Body = tuple[Kind, str, Json]


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
            old = recorded.declared.get(("project", new.id))
            states[new.id] = _next_state(states.get(new.id), old.body if old else None, new)
    return Changes(recorded, versions, tuple(states[id] for id in sorted(states)))


def _new_versions(recorded: Recorded, bodies: Iterable[Body]) -> Iterator[NewVersion]:
    for kind, id, body in bodies:
        declared = recorded.declared.get((kind, id))
        if declared is not None and declared.content_hash == content_hash(body):
            continue
        words = describe_changes(kind, declared.body if declared else None, body)
        yield NewVersion(
            kind, id, recorded.latest.get((kind, id), 0) + 1, without_version(body), tuple(words), declared is None
        )


def _next_state(state: ProjectState | None, old: Json | None, new: NewVersion) -> ProjectState:
    """A new project is a draft, and so is one whose structure has changed."""
    if state is None:
        return ProjectState(project_id=new.id, status="draft", version=new.version)
    update: dict[str, object] = {"version": new.version}
    if state.status != "draft" and old is not None and is_structural_change(old, new.body):
        update |= {"status": "draft", **UNPINNED}
    return state.model_copy(update=update)


def _with_conflicts(changed: Changes, state: ProjectState) -> ProjectState:
    conflicts = conflicts_of(state, changed)
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
