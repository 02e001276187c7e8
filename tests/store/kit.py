"""What store tests record: single definitions, and conflicts, without files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tallybook.model.state import Conflict, Json, Kind
from tallybook.project.recorded import Changes, Recorded
from tallybook.project.versions import Body, changes_of
from tallybook.store.store import Store


@dataclass(frozen=True)
class Version:
    """The version a definition has once it is recorded."""

    kind: Kind
    id: str
    version: int
    new: bool


def record(store: Store, kind: Kind, id: str, body: Json) -> Version:
    """Records one definition as if a file said it."""
    return record_all(store, [(kind, id, body)])[0]


def record_all(store: Store, bodies: Iterable[Body]) -> tuple[Version, ...]:
    """Records definitions as if files said them."""
    listed = list(bodies)
    saved = store.save(partial(changes_of, bodies=listed))
    new = {(each.kind, each.id): each.version for each in saved.versions}
    return tuple(
        Version(kind, id, new.get((kind, id)) or saved.recorded.declared[kind, id].version, (kind, id) in new)
        for kind, id, _ in listed
    )


def mark_conflict(store: Store, project_id: str, conflicts: Sequence[Conflict]) -> None:
    """Puts a project in conflict."""

    def decide(recorded: Recorded) -> Changes:
        state = recorded.states[project_id].model_copy(update={"status": "conflict", "conflicts": tuple(conflicts)})
        return replace(Changes(recorded), states=(state,))

    store.save(decide)
