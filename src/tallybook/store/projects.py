"""The state of projects: draft, active, inactive or in conflict, and the input version they are pinned to."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tallybook.errors import StoreError, fail
from tallybook.model.state import Conflict, Json, ProjectState, ProjectStatus
from tallybook.project.lifecycle import PROJECT_MOVES, UNPINNED, check_move
from tallybook.store.active import ActiveRuns, refuse_while_active
from tallybook.store.database import now
from tallybook.store.definitions import DefinitionVersions
from tallybook.store.tables import DEFINITIONS, PROJECTS, RUNS


class Projects(DefinitionVersions, ActiveRuns):
    """Reads and changes states of projects. `PROJECT_MOVES` says which changes are allowed."""

    def project_state(self, project_id: str) -> ProjectState | None:
        """Returns the state of a project; None if it is not recorded."""
        with self._read() as connection:
            return _state(connection, self.workspace_id, project_id)

    def project_states(self) -> tuple[ProjectState, ...]:
        """Returns the states of all projects, ordered by id."""
        with self._read() as connection:
            return self._project_states(connection)

    def _project_states(self, connection: sa.Connection) -> tuple[ProjectState, ...]:
        rows = connection.execute(_projects(self.workspace_id).order_by(PROJECTS.c.project_id))
        return tuple(_project_state(row) for row in rows)

    def activate(self, project_id: str, version: int, input_dataset_version: int) -> ProjectState:
        """Activates the version that was validated, pinned to the input version it was validated with."""
        with self._write() as connection:
            state = known_project(connection, self.workspace_id, project_id)
            check_version(state, version)
            _check_dataset(connection, self.workspace_id, project_id, version, input_dataset_version)
            return _move(
                connection,
                self.workspace_id,
                state,
                "active",
                input_dataset_version=input_dataset_version,
                reviewed_dataset_version=input_dataset_version,
                conflicts=None,
            )

    def deactivate(self, project_id: str) -> ProjectState:
        """Takes a project out of use and removes its pin. Refused while a run of it is active."""
        self.fail_dead_runs()
        with self._write() as connection:
            moved = _move(
                connection,
                self.workspace_id,
                known_project(connection, self.workspace_id, project_id),
                "inactive",
                **_UNPINNED,
            )
            what = f"project '{project_id}' cannot be deactivated"
            refuse_while_active(connection, self.workspace_id, what, RUNS.c.project_id == project_id)
            return moved

    def redraft(self, project_id: str) -> ProjectState:
        """Makes a project a draft again although its file has not changed."""
        with self._write() as connection:
            return _move(
                connection,
                self.workspace_id,
                known_project(connection, self.workspace_id, project_id),
                "draft",
                **_UNPINNED,
            )

    def stay_pinned(self, project_id: str) -> ProjectState:
        """Settles a conflict by staying on the pinned version of the input dataset."""
        with self._write() as connection:
            state = known_project(connection, self.workspace_id, project_id)
            if state.status != "conflict":
                raise StoreError(f"project '{project_id}' is {state.status}, not in conflict")
            input_id = _body(connection, self.workspace_id, project_id, state.version)["input_dataset_id"]
            others = sorted({conflict.dataset_id for conflict in state.conflicts} - {input_id})
            if others:
                raise StoreError(
                    f"project '{project_id}' cannot stay on a version of {', '.join(others)}: only its input dataset "
                    f"'{input_id}' is pinned",
                    "name a dataset_version in the operations that use it",
                )
            reviewed = max(conflict.to_version for conflict in state.conflicts)
            return _move(
                connection, self.workspace_id, state, "active", reviewed_dataset_version=reviewed, conflicts=None
            )

    def _save_state(self, connection: sa.Connection, new: ProjectState) -> None:
        """Saves the state of a project. Refused if its status may not change in that way."""
        values = new.model_dump(mode="json", exclude={"project_id", "changed_at"})
        values["conflicts"] = values["conflicts"] or None
        old = _state(connection, self.workspace_id, new.project_id)
        if old is None:
            key = {"workspace_id": self.workspace_id, "project_id": new.project_id}
            connection.execute(sa.insert(PROJECTS).values(**key, changed_at=now(), **values))
        elif old.status == new.status:
            _update(connection, self.workspace_id, new.project_id, **values)
        else:
            _move(connection, self.workspace_id, old, **values)


_UNPINNED: dict[str, Any] = {**UNPINNED, "conflicts": None}


def check_version(state: ProjectState, version: int) -> None:
    """Raises `ProjectNotRunnable` if someone has recorded another version in the meantime."""
    if state.version != version:
        raise fail(
            "ProjectNotRunnable",
            f"project '{state.project_id}' is at version {state.version} now, not {version}: "
            "it was changed in the meantime",
            hint="run the command again; it reads the files as they are now",
            project=state.project_id,
        )


def known_project(connection: sa.Connection, workspace_id: str, project_id: str) -> ProjectState:
    """Returns the state of a project. Raises `ProjectNotFound` if it is not recorded."""
    state = _state(connection, workspace_id, project_id)
    if state is None:
        raise fail("ProjectNotFound", f"project '{project_id}' is not recorded", hint="run `tallybook apply`")
    return state


_COLUMNS = [column for column in PROJECTS.c if column is not PROJECTS.c.workspace_id]


def _projects(workspace_id: str) -> sa.Select[Any]:
    return sa.select(*_COLUMNS).where(PROJECTS.c.workspace_id == workspace_id)


def _state(connection: sa.Connection, workspace_id: str, project_id: str) -> ProjectState | None:
    row = connection.execute(_projects(workspace_id).where(PROJECTS.c.project_id == project_id)).first()
    return None if row is None else _project_state(row)


def _project_state(row: sa.Row[Any]) -> ProjectState:
    values = dict(row._mapping)
    conflicts = tuple(Conflict.model_validate(conflict, strict=False) for conflict in values.pop("conflicts") or ())
    return ProjectState(conflicts=conflicts, **values)


def _move(
    connection: sa.Connection, workspace_id: str, state: ProjectState, status: ProjectStatus, **values: Any
) -> ProjectState:
    check_move(f"project '{state.project_id}'", PROJECT_MOVES, state.status, status)
    return _update(connection, workspace_id, state.project_id, status=status, **values)


def _update(connection: sa.Connection, workspace_id: str, project_id: str, **values: Any) -> ProjectState:
    of_project = (PROJECTS.c.workspace_id == workspace_id, PROJECTS.c.project_id == project_id)
    change = sa.update(PROJECTS).where(*of_project).values(changed_at=now(), **values)
    return _project_state(connection.execute(change.returning(*_COLUMNS)).one())


def _body(connection: sa.Connection, workspace_id: str, project_id: str, version: int) -> Json:
    query = sa.select(DEFINITIONS.c.body).where(
        DEFINITIONS.c.workspace_id == workspace_id,
        DEFINITIONS.c.kind == "project",
        DEFINITIONS.c.id == project_id,
        DEFINITIONS.c.version == version,
    )
    body: Json = connection.execute(query).scalar_one()
    return body


def _check_dataset(
    connection: sa.Connection, workspace_id: str, project_id: str, project_version: int, version: int
) -> None:
    dataset_id = _body(connection, workspace_id, project_id, project_version)["input_dataset_id"]
    query = sa.select(DEFINITIONS.c.version).where(
        DEFINITIONS.c.workspace_id == workspace_id,
        DEFINITIONS.c.kind == "dataset",
        DEFINITIONS.c.id == dataset_id,
        DEFINITIONS.c.version == version,
    )
    if connection.execute(query).first() is None:
        raise fail(
            "DatasetVersionNotFound", f"dataset '{dataset_id}' has no version {version} to pin", project=project_id
        )
