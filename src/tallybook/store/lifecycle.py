"""The states of projects and periods, and the changes that new files make to them.

A project is a draft, active, inactive or in conflict, and may be pinned to a version of its input. A period is open,
closed or locked, in this order only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from tallybook.errors import StoreError, fail
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import PeriodStatus
from tallybook.model.run import Run
from tallybook.model.state import Conflict, Json, ProjectState, ProjectStatus
from tallybook.project.lifecycle import PERIOD_MOVES, PROJECT_MOVES, UNPINNED, check_move, check_project_runs
from tallybook.project.recorded import Changes, Recorded
from tallybook.store.active import IS_ACTIVE, ActiveRuns, refuse_while_active
from tallybook.store.changes import StateChanges, add_change
from tallybook.store.database import now
from tallybook.store.definitions import DefinitionVersions, insert_version
from tallybook.store.tables import DEFINITIONS, PERIODS, PROJECTS, RUNS

_UNPINNED: dict[str, Any] = {**UNPINNED, "conflicts": None}
_COLUMNS = [column for column in PROJECTS.c if column is not PROJECTS.c.workspace_id]


class Projects(DefinitionVersions, ActiveRuns, StateChanges):
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

    def activate(
        self, project_id: str, version: int, input_dataset_version: int, reason: str | None = None
    ) -> ProjectState:
        """Activates the version that was validated, pinned to the input version it was validated with. Records who
        did it, and why."""
        with self._write() as connection:
            state = known_project(connection, self.workspace_id, project_id)
            check_version(state, version)
            _check_dataset(connection, self.workspace_id, project_id, version, input_dataset_version)
            add_change(connection, self.workspace_id, "active", reason, project_id=project_id, version=version)
            return _move(
                connection,
                self.workspace_id,
                state,
                "active",
                active_version=version,
                input_dataset_version=input_dataset_version,
                reviewed_dataset_version=input_dataset_version,
                conflicts=None,
            )

    def deactivate(self, project_id: str, reason: str | None = None) -> ProjectState:
        """Takes a project out of use and removes its pin. Refused while a run of it is active. Records who did it, and
        why."""
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
            of = {"project_id": project_id, "version": moved.version}
            add_change(connection, self.workspace_id, "inactive", reason, **of)
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

    def stay_pinned(self, project_id: str, reason: str | None = None) -> ProjectState:
        """Settles a conflict by staying on the pinned version of the input dataset."""
        with self._write() as connection:
            state = known_project(connection, self.workspace_id, project_id)
            if state.status != "conflict":
                raise StoreError(
                    f"project '{project_id}' is {state.status}, not in conflict", "leave out --stay-pinned"
                )
            input_id = _body(connection, self.workspace_id, project_id, state.version)["input_dataset_id"]
            others = sorted({conflict.dataset_id for conflict in state.conflicts} - {input_id})
            if others:
                raise StoreError(
                    f"project '{project_id}' cannot stay on a version of {', '.join(others)}: only its input dataset "
                    f"'{input_id}' is pinned",
                    "name a dataset_version in the operations that use it",
                )
            reviewed = max(conflict.to_version for conflict in state.conflicts)
            of = {"project_id": project_id, "version": state.version}
            add_change(connection, self.workspace_id, "active", reason, **of)
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


def check_project_as_begun(connection: sa.Connection, run: Run) -> None:
    """Refuses a run whose project no longer has the status it had when the run began."""
    state = known_project(connection, run.workspace_id, run.project_id)
    check_project_runs(state, draft=True)
    if state.status != run.project_status:
        raise fail(
            "ProjectNotRunnable",
            f"project '{run.project_id}' is {state.status} now and was {run.project_status} when run {run.id} began",
            hint=f"start a new run: `tallybook run {run.project_id} --period {run.period}`",
            project=run.project_id,
        )


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


class Periods(ActiveRuns, StateChanges):
    """Records changes of status only. Any other period has the status that its calendar gives it."""

    def period_status(self, calendar_id: str, identifier: str, nested: NestedPeriod | None = None) -> PeriodStatus:
        """Returns the status of a period; with `nested`, that of the periods around it counts too."""
        changed = self.period_statuses(calendar_id)
        return changed.get(identifier, "open") if nested is None else nested.status(changed)

    def period_statuses(self, calendar_id: str) -> dict[str, PeriodStatus]:
        """Returns the status of each period of a calendar that was closed or locked itself."""
        with self._read() as connection:
            return changed_statuses(connection, self.workspace_id, calendar_id)

    def set_period_status(
        self,
        calendar_id: str,
        identifier: str,
        status: PeriodStatus,
        nested: NestedPeriod | None = None,
        reason: str | None = None,
    ) -> PeriodStatus:
        """Closes or locks a period, for good. Refused while a run of the period is active. With `nested` the status of
        the periods around it counts, and runs of all periods around and inside it. Records who did it, and why."""
        self.fail_dead_runs()
        with self._write() as connection:
            changed = changed_statuses(connection, self.workspace_id, calendar_id)
            old = changed.get(identifier, "open") if nested is None else nested.status(changed)
            is_skipped = old == "open" and status == "locked"
            hint = f"close it first: `tallybook period {identifier} --close`" if is_skipped else None
            check_move(f"period {identifier}", PERIOD_MOVES, old, status, hint)
            on_calendar = (RUNS.c.workspace_id == self.workspace_id, RUNS.c.calendar_id == calendar_id)
            active = connection.execute(sa.select(RUNS.c.period).where(*on_calendar, IS_ACTIVE)).scalars()
            related = [name for name in active if name == identifier or (nested and nested.is_related(name))]
            what = f"period {identifier} cannot become {status}"
            refuse_while_active(connection, self.workspace_id, what, *on_calendar, RUNS.c.period.in_(related))
            values = {"status": status, "changed_at": now()}
            key = {"workspace_id": self.workspace_id, "calendar_id": calendar_id, "identifier": identifier}
            change = sa.update(PERIODS).filter_by(**key)
            if connection.execute(change.values(values)).rowcount == 0:
                connection.execute(sa.insert(PERIODS).values(**key, **values))
            of = {"calendar_id": calendar_id, "period": identifier}
            add_change(connection, self.workspace_id, status, reason, **of)
            return status


def changed_statuses(connection: sa.Connection, workspace_id: str, calendar_id: str) -> dict[str, PeriodStatus]:
    """Returns the status of each period of a calendar that was closed or locked itself, in an open transaction."""
    query = sa.select(PERIODS.c.identifier, PERIODS.c.status).filter_by(
        workspace_id=workspace_id, calendar_id=calendar_id
    )
    return {row.identifier: row.status for row in connection.execute(query.order_by(PERIODS.c.identifier))}


class ChangeStore(Projects):
    """Reads what is recorded of definitions, and saves changes that are computed from it."""

    def recorded(self) -> Recorded:
        """Returns everything that is recorded of definitions, read in one transaction."""
        with self._read() as connection:
            return self._recorded(connection)

    def save(self, decide: Callable[[Recorded], Changes]) -> Changes:
        """Saves the changes that `decide` computes from what is recorded, and returns them. Both are one
        transaction."""
        with self._write() as connection:
            recorded = self._recorded(connection)
            changes = decide(recorded)
            for new in changes.versions:
                insert_version(connection, self.workspace_id, new.kind, new.id, new.version, new.body)
            for state in changes.states:
                if state != recorded.states.get(state.project_id):
                    self._save_state(connection, state)
            return replace(changes, states=self._project_states(connection))

    def _recorded(self, connection: sa.Connection) -> Recorded:
        return Recorded(
            declared=MappingProxyType(self._all_declared(connection)),
            latest=MappingProxyType(self._newest_numbers(connection)),
            datasets=self._versions(connection, "dataset"),
            registrations=self._registrations(connection),
            states=MappingProxyType({state.project_id: state for state in self._project_states(connection)}),
        )
