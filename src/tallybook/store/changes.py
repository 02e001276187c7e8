"""Saves new versions of definitions and states of projects, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import sqlalchemy as sa

from tallybook.project.recorded import Changes, Recorded
from tallybook.store.definitions import insert_version
from tallybook.store.projects import Projects
from tallybook.store.registrations import Registrations


class ChangeStore(Projects, Registrations):
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
