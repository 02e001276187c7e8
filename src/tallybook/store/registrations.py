"""Outputs of runs registered as versions of datasets."""

from __future__ import annotations

import sqlalchemy as sa

from tallybook.errors import StoreError
from tallybook.model.run import Run
from tallybook.model.state import Json, Registration
from tallybook.store.database import Database, now
from tallybook.store.definitions import add_version
from tallybook.store.permission import check_may_write
from tallybook.store.tables import REGISTRATIONS


class Registrations(Database):
    """Which output of which run a dataset version came from, and where its rows stay readable."""

    def register_dataset(self, name: str, body: Json, run: Run, seq: int, reads: Json) -> Registration:
        """A run's output as version 1 or the next of the dataset `name`. `reads` says where exactly these rows stay
        readable. The same output of the same run is registered once, however often it is retried. A run that may no
        longer write is refused."""
        with self._write() as connection:
            check_may_write(connection, run)
            done = _registration(connection, REGISTRATIONS.c.run_id == run.id, REGISTRATIONS.c.seq == seq)
            if done is not None:
                return _same_dataset(done, name)
            version = add_version(connection, "dataset", name, body)
            values = {
                "dataset_id": name,
                "version": version,
                "run_id": run.id,
                "seq": seq,
                "reads": reads,
                "created_at": now(),
            }
            connection.execute(sa.insert(REGISTRATIONS).values(values))
            return Registration.model_validate(values)

    def registration(self, dataset_id: str, version: int) -> Registration | None:
        """Where a registered dataset version came from and reads; None for a version that came from a file."""
        with self._read() as connection:
            return _registration(
                connection, REGISTRATIONS.c.dataset_id == dataset_id, REGISTRATIONS.c.version == version
            )

    def registrations(self, run_id: str | None = None) -> tuple[Registration, ...]:
        """What the outputs of a run, or of all runs, were registered as."""
        query = sa.select(REGISTRATIONS).order_by(REGISTRATIONS.c.run_id, REGISTRATIONS.c.seq)
        if run_id is not None:
            query = query.where(REGISTRATIONS.c.run_id == run_id)
        with self._read() as connection:
            return tuple(Registration.model_validate(dict(row)) for row in connection.execute(query).mappings())


def _same_dataset(done: Registration, name: str) -> Registration:
    if done.dataset_id != name:
        raise StoreError(
            f"output {done.seq} of run {done.run_id} is already registered as dataset '{done.dataset_id}', not '{name}'"
        )
    return done


def _registration(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Registration | None:
    row = connection.execute(sa.select(REGISTRATIONS).where(*conditions)).mappings().first()
    return None if row is None else Registration.model_validate(dict(row))
