"""The definitions that the store has recorded, and the changes that new files make to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType

from tallybook.errors import Problem
from tallybook.model.base import Entity
from tallybook.model.dataset import Dataset
from tallybook.model.state import Definition, Json, Kind, ProjectState, Registration, canonical_json
from tallybook.project.changes import describe_changes
from tallybook.project.dataset_versions import DatasetVersions

Key = tuple[Kind, str]


@dataclass(frozen=True)
class Recorded:
    """The recorded definitions, read in one transaction."""

    declared: Mapping[Key, Definition] = field(default_factory=lambda: MappingProxyType({}))
    """The newest version of each definition that came from a file: what a file is compared with."""
    latest: Mapping[Key, int] = field(default_factory=lambda: MappingProxyType({}))
    """The number of the newest version, wherever it came from."""
    datasets: tuple[Definition, ...] = ()
    """Every version of every dataset."""
    registrations: tuple[Registration, ...] = ()
    states: Mapping[str, ProjectState] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class NewVersion:
    """A definition that differs from what was recorded, with the version it gets."""

    kind: Kind
    id: str
    version: int
    body: Json
    before: Json | None = None
    """The version that came from a file before; None if there is none."""

    @property
    def is_new(self) -> bool:
        return self.before is None

    @property
    def words(self) -> tuple[str, ...]:
        """The changes in words. They are computed only when they are shown."""
        return tuple(describe_changes(self.kind, self.before, self.body))


@dataclass(frozen=True)
class Changes:
    """What recording the files changes, and what is recorded afterwards."""

    recorded: Recorded
    """What the changes are made to."""
    versions: tuple[NewVersion, ...] = ()
    states: tuple[ProjectState, ...] = ()
    """Of all projects, after the changes."""
    left_out: tuple[Problem, ...] = ()
    """The problems of definitions that are not recorded because of them."""

    def state(self, project_id: str) -> ProjectState | None:
        """The state of a project after the changes; None when its file could not be read and never was."""
        return next((state for state in self.states if state.project_id == project_id), None)

    def latest(self, kind: Kind) -> dict[str, int]:
        """Returns the number of the newest version of every definition of a kind, by id, after the changes."""
        recorded = {id: version for (of, id), version in self.recorded.latest.items() if of == kind}
        return recorded | {new.id: new.version for new in self.versions if new.kind == kind}

    @cached_property
    def datasets(self) -> DatasetVersions:
        """Every dataset version that is recorded after the changes."""
        recorded = (dataset_from(definition.body, definition.version) for definition in self.recorded.datasets)
        new = (dataset_from(new.body, new.version) for new in self.versions if new.kind == "dataset")
        return DatasetVersions().with_datasets(*recorded, *new)

    @property
    def changed_datasets(self) -> dict[str, int]:
        """The datasets that get a new version, and that version."""
        return {new.id: new.version for new in self.versions if new.kind == "dataset"}

    def dataset_bodies(self, dataset_id: str) -> dict[int, Json]:
        """Every version of a dataset that is recorded after the changes, as it is recorded."""
        recorded = {old.version: old.body for old in self.recorded.datasets if old.id == dataset_id}
        new = {new.version: new.body for new in self.versions if (new.kind, new.id) == ("dataset", dataset_id)}
        return recorded | new

    def project_body(self, project_id: str) -> Json:
        """A project as it is recorded after the changes."""
        new = (new.body for new in self.versions if (new.kind, new.id) == ("project", project_id))
        return next(new, None) or self.recorded.declared["project", project_id].body


def body_of(entity: Entity) -> Json:
    """Returns a definition as it is recorded: the file's content without the version number."""
    return entity.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"version"})


def dataset_from(body: Json, version: int) -> Dataset:
    """A dataset version from its recorded body."""
    return Dataset.model_validate({**body, "version": version}, strict=False)


def content_hash(body: Json) -> str:
    """Returns a text that is equal for equal bodies. The version number is not part of it."""
    return sha256(canonical_json(without_version(body)).encode()).hexdigest()


def without_version(body: Json) -> Json:
    """Returns a body without its version number."""
    return {key: value for key, value in body.items() if key != "version"}
