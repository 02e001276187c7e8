"""Registers outputs of runs as versions of datasets."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tallybook.errors import StoreError
from tallybook.model.run import Run
from tallybook.model.state import Json, Registration
from tallybook.store.database import Database, now
from tallybook.store.definitions import add_version
from tallybook.store.permission import check_may_write
from tallybook.store.tables import REGISTRATIONS


class Registrations(Database):
    """Records which output of which run a dataset version comes from, and where its rows stay readable."""

    def register_dataset(self, name: str, body: Json, run: Run, seq: int, reads: Json) -> Registration:
        """Registers an output of a run as the next version of the dataset `name`. `reads` is the location where these
        rows stay readable. An output is registered once, even if its run is retried. A run that may no longer write is
        refused."""
        with self._write() as connection:
            check_may_write(connection, run)
            done = _registration(
                connection, self.workspace_id, REGISTRATIONS.c.run_id == run.id, REGISTRATIONS.c.seq == seq
            )
            if done is not None:
                return _same_dataset(done, name)
            version = add_version(connection, self.workspace_id, "dataset", name, body)
            values = {
                "dataset_id": name,
                "version": version,
                "run_id": run.id,
                "seq": seq,
                "reads": reads,
                "created_at": now(),
            }
            connection.execute(sa.insert(REGISTRATIONS).values(workspace_id=self.workspace_id, **values))
            return Registration.model_validate(values)

    def registration(self, dataset_id: str, version: int) -> Registration | None:
        """Returns the registration of a dataset version; None for a version that came from a file."""
        with self._read() as connection:
            of_version = (REGISTRATIONS.c.dataset_id == dataset_id, REGISTRATIONS.c.version == version)
            return _registration(connection, self.workspace_id, *of_version)

    def registrations(self, run_id: str | None = None) -> tuple[Registration, ...]:
        """Returns the registrations of a run, or of all runs."""
        with self._read() as connection:
            return self._registrations(connection, run_id)

    def _registrations(self, connection: sa.Connection, run_id: str | None = None) -> tuple[Registration, ...]:
        query = _registrations(self.workspace_id).order_by(REGISTRATIONS.c.run_id, REGISTRATIONS.c.seq)
        if run_id is not None:
            query = query.where(REGISTRATIONS.c.run_id == run_id)
        return tuple(Registration.model_validate(dict(row)) for row in connection.execute(query).mappings())


def _same_dataset(done: Registration, name: str) -> Registration:
    if done.dataset_id != name:
        raise StoreError(
            f"output {done.seq} of run {done.run_id} is already registered as dataset '{done.dataset_id}', not '{name}'"
        )
    return done


def _registrations(workspace_id: str) -> sa.Select[Any]:
    columns = [column for column in REGISTRATIONS.c if column is not REGISTRATIONS.c.workspace_id]
    return sa.select(*columns).where(REGISTRATIONS.c.workspace_id == workspace_id)


def _registration(
    connection: sa.Connection, workspace_id: str, *conditions: sa.ColumnElement[bool]
) -> Registration | None:
    row = connection.execute(_registrations(workspace_id).where(*conditions)).mappings().first()
    return None if row is None else Registration.model_validate(dict(row))
