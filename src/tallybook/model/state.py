"""What the metadata store remembers of definitions: their versions, and the state of a project apart from its text."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from tallybook.model.base import Entity

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


class ColumnChange(Entity):
    """A change of a column that breaks the operations using it."""

    column: str
    change: str
    """In words: `removed`, `renamed to level`, `string → integer`."""
    operations: tuple[int, ...]

    def __str__(self) -> str:
        noun = "operation" if len(self.operations) == 1 else "operations"
        return f"column {self.column}: {self.change}, used by {noun} {', '.join(map(str, self.operations))}"


class Conflict(Entity):
    """Why a dataset's new version breaks an active project."""

    dataset_id: str
    from_version: int
    to_version: int
    changes: tuple[ColumnChange, ...]

    def __str__(self) -> str:
        head = f"dataset {self.dataset_id} v{self.from_version} → v{self.to_version}"
        return f"{head}, {', '.join(map(str, self.changes))}"


class ProjectState(Entity):
    """The status of a project, and the versions it is about."""

    project_id: str
    status: ProjectStatus
    version: int
    input_dataset_version: int | None = None
    """Pinned when the project is activated."""
    reviewed_dataset_version: int | None = None
    """The newest version of the input dataset that was compared with the pinned one and settled."""
    conflicts: tuple[Conflict, ...] = ()
    changed_at: datetime | None = None
    """None until the state is saved."""
