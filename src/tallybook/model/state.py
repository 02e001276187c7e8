"""What the metadata store remembers of definitions: their versions, and the state of a project apart from its text."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from tallybook.model.base import Entity, Record

Json = dict[str, Any]
Kind = Literal["dataset", "resolver", "datasource", "project", "calendar"]
ProjectStatus = Literal["draft", "active", "inactive", "conflict"]


def canonical_json(value: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces. Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Definition(Entity):
    """One version of a definition; never changed once made."""

    kind: Kind
    id: str
    version: int
    content_hash: str
    body: Json
    status: str | None
    """The definition's own `status` key, where its kind has one."""
    created_at: datetime


class Registration(Entity):
    """Which run's output a dataset version came from, and where its rows stay readable."""

    dataset_id: str
    version: int
    run_id: str
    seq: int
    reads: Json
    created_at: datetime
    project_id: str
    """The project of the run."""
    calendar_id: str
    period: str
    """The period of the run, on that calendar."""


class ColumnChange(Record):
    """A change of a column that breaks the operations using it."""

    column: str
    """The name of the column, of a lookup as `alias.column`."""
    change: str
    """In words: `removed`, `renamed to level`, `string → integer`."""
    operations: tuple[int, ...]
    """The numbers of the operations that use it."""

    def __str__(self) -> str:
        noun = "operation" if len(self.operations) == 1 else "operations"
        return f"column {self.column}: {self.change}, used by {noun} {', '.join(map(str, self.operations))}"


class Conflict(Record):
    """Why a dataset's new version breaks an active project."""

    dataset_id: str
    """The id of the dataset."""
    from_version: int
    """The version the project is pinned to."""
    to_version: int
    """The new version."""
    changes: tuple[ColumnChange, ...]
    """The changes that break the project."""

    def __str__(self) -> str:
        head = f"dataset {self.dataset_id} v{self.from_version} → v{self.to_version}"
        return f"{head}, {', '.join(map(str, self.changes))}"


class StateChange(Record):
    """A change of the state of a project or a period: who made it, when and why."""

    project_id: str | None = None
    """The project; null for a period."""
    version: int | None = None
    """The version of the project that was activated or deactivated."""
    period: str | None = None
    """The period; null for a project."""
    status: str
    """The new status."""
    at: datetime
    """When it was changed."""
    changed_by: str | None
    """The user who changed it."""
    reason: str | None
    """Why, as given with `--reason`."""

    def __str__(self) -> str:
        by = f" by {self.changed_by}" if self.changed_by else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.status} on {self.at.strftime('%Y-%m-%d %H:%M:%S')} UTC{by}{why}"


class ProjectState(Record):
    """The status of a project, and the versions it is about."""

    project_id: str
    """The id of the project."""
    status: ProjectStatus
    """What may be done with it: an active project runs, a draft runs into the sandbox."""
    version: int
    """The version of the project."""
    input_dataset_version: int | None = None
    """Pinned when the project is activated."""
    reviewed_dataset_version: int | None = None
    """The newest version of the input dataset that was compared with the pinned one and settled."""
    conflicts: tuple[Conflict, ...] = ()
    """Why the project is in conflict."""
    active_version: int | None = None
    """The version that was activated last; null if the project was never active."""
    changed_at: datetime | None = None
    """When the state last changed; null until it is saved."""
