"""Records who changed the state of a project or a period, when and why."""

from __future__ import annotations

import getpass
import os
from typing import Any

import sqlalchemy as sa

from tallybook.model.state import StateChange
from tallybook.store.database import Database, now
from tallybook.store.tables import STATE_CHANGES

USER_VARIABLE = "TALLYBOOK_USER"


def current_user() -> str:
    """Returns the user on whose behalf this process works: TALLYBOOK_USER if it is set, else the user of the operating
    system; a number if that has no name."""
    named = os.environ.get(USER_VARIABLE, "").strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def add_change(connection: sa.Connection, workspace_id: str, status: str, reason: str | None, **of: Any) -> None:
    """Records a change of state, in the transaction that makes it. `of` is the project with its version, or the period
    with its calendar."""
    values = {"workspace_id": workspace_id, "status": status, "at": now(), "changed_by": current_user()}
    connection.execute(sa.insert(STATE_CHANGES).values(**values, reason=(reason or "").strip() or None, **of))


class StateChanges(Database):
    """Lists changes of state, the oldest first."""

    def project_changes(self, project_id: str) -> tuple[StateChange, ...]:
        """Returns the activations and deactivations of a project."""
        return self._changes(STATE_CHANGES.c.project_id == project_id)

    def period_changes(self, calendar_id: str) -> tuple[StateChange, ...]:
        """Returns when the periods of a calendar were closed and locked."""
        return self._changes(STATE_CHANGES.c.calendar_id == calendar_id)

    def _changes(self, condition: sa.ColumnElement[bool]) -> tuple[StateChange, ...]:
        columns = [STATE_CHANGES.c[name] for name in StateChange.model_fields]
        query = sa.select(*columns).where(STATE_CHANGES.c.workspace_id == self.workspace_id, condition)
        with self._read() as connection:
            rows = connection.execute(query.order_by(STATE_CHANGES.c.number))
            return tuple(StateChange.model_validate(dict(row._mapping)) for row in rows)
