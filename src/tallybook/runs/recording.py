"""The files of a workspace recorded in the store, and the store read back as what a run is bound to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallybook.model.base import Entity
from tallybook.model.dataset import Dataset
from tallybook.model.location import Location
from tallybook.model.state import Json, Kind, ProjectState, Recorded
from tallybook.project.catalog import Catalog
from tallybook.project.lifecycle import is_structural_change
from tallybook.project.load import Definitions
from tallybook.runs.places import location_from_json
from tallybook.store.definitions import content_hash
from tallybook.store.store import Store


def body_of(entity: Entity) -> Json:
    """A definition as it is recorded: what the file says, without the version the system counts."""
    return entity.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"version"})


def bodies(definitions: Definitions) -> Iterator[tuple[Kind, str, Json]]:
    """Everything the files define that could be read."""
    kinds: tuple[tuple[Kind, dict[str, object]], ...] = (
        ("calendar", dict(definitions.calendars)),
        ("datasource", dict(definitions.datasources)),
        ("resolver", dict(definitions.resolvers)),
        ("dataset", dict(definitions.datasets)),
    )
    for kind, entries in kinds:
        for id, entry in entries.items():
            yield kind, id, body_of(entry.entity)  # type: ignore[attr-defined]  # every entry has an entity
    for id, project in definitions.projects.items():
        if project.project is not None:
            yield "project", id, body_of(project.project)


def record(store: Store, definitions: Definitions) -> tuple[Recorded, ...]:
    """Records the files; what changed becomes a new version."""
    return store.record_all(bodies(definitions))


@dataclass(frozen=True)
class Known:
    """Every dataset version the store knows, and where registered ones keep their rows."""

    catalog: Catalog
    registered: dict[tuple[str, int], Location]


def known_datasets(store: Store) -> Known:
    """Reads back what was recorded and registered."""
    catalog = Catalog()
    for definition in store.versions("dataset"):
        catalog.add(dataset_from(definition.body, definition.version))
    made = store.registrations()
    return Known(catalog, {(each.dataset_id, each.version): location_from_json(each.reads) for each in made})


def previewed_datasets(store: Store | None, definitions: Definitions) -> Known:
    """What `known_datasets` would say after recording the files, without recording them."""
    known = known_datasets(store) if store is not None else Known(Catalog(), {})
    recorded = store.all_declared() if store is not None else {}
    for id, entry in definitions.datasets.items():
        body = body_of(entry.entity)
        declared = recorded.get(("dataset", id))
        if declared is None or declared.content_hash != content_hash(body):
            known.catalog.add(dataset_from(body, max(known.catalog.versions.get(id, {0: None})) + 1))
    return known


def previewed_state(store: Store | None, definitions: Definitions, project_id: str) -> ProjectState | None:
    """The state a project would have after recording the files; None when it was never recorded."""
    state = store.project_state(project_id) if store is not None else None
    project = definitions.projects[project_id].project
    if store is None or state is None or project is None:
        return None
    declared, body = store.declared("project", project_id), body_of(project)
    assert declared is not None, "a project with a state was recorded"
    if declared.content_hash == content_hash(body):
        return state
    changes: dict[str, object] = {"version": state.version + 1}
    if is_structural_change(declared.body, body):
        changes |= {"status": "draft", "input_dataset_version": None}
    return state.model_copy(update=changes)


def dataset_from(body: Json, version: int) -> Dataset:
    """A dataset version from its recorded body."""
    return Dataset.model_validate({**body, "version": version}, strict=False)
