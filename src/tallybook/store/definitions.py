"""Versions of definitions, from files and from runs. A recorded version never changes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tallybook.model.state import Definition, Json, Kind, Registration
from tallybook.project.recorded import content_hash, without_version
from tallybook.store.database import Database, now
from tallybook.store.tables import DEFINITIONS, REGISTRATIONS, RUNS

_FROM_FILES = ~sa.exists().where(
    DEFINITIONS.c.kind == "dataset",
    REGISTRATIONS.c.workspace_id == DEFINITIONS.c.workspace_id,
    REGISTRATIONS.c.dataset_id == DEFINITIONS.c.id,
    REGISTRATIONS.c.version == DEFINITIONS.c.version,
)


class DefinitionVersions(Database):
    """Reads the recorded versions of definitions, and the registrations of those that come from an output of a run."""

    def definition(self, kind: Kind, id: str, version: int) -> Definition | None:
        """Returns one version; None if it does not exist."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id, DEFINITIONS.c.version == version)

    def latest(self, kind: Kind, id: str) -> Definition | None:
        """Returns the newest version, from a file or a run. The definition has its `status`: a dataset is disabled if
        its newest version is."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id)

    def declared(self, kind: Kind, id: str) -> Definition | None:
        """Returns the newest version that came from a file. A file is compared with it."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id, _FROM_FILES)

    def _all_declared(self, connection: sa.Connection) -> dict[tuple[Kind, str], Definition]:
        """Returns the newest version from a file, of every definition that has one. A file is compared with that
        version, so that an output registered under the id of a declared dataset does not make the file look changed."""
        query = _definitions(self.workspace_id).where(_FROM_FILES).order_by(DEFINITIONS.c.version)
        return {(version.kind, version.id): version for version in map(_definition, connection.execute(query))}

    def _newest_numbers(self, connection: sa.Connection) -> dict[tuple[Kind, str], int]:
        """Returns the number of the newest version of every definition, from a file or a run."""
        key = (DEFINITIONS.c.kind, DEFINITIONS.c.id)
        query = sa.select(*key, sa.func.max(DEFINITIONS.c.version)).group_by(*key)
        query = query.where(DEFINITIONS.c.workspace_id == self.workspace_id)
        return {(kind, id): version for kind, id, version in connection.execute(query)}

    def versions(self, kind: Kind, id: str | None = None) -> tuple[Definition, ...]:
        """Returns all versions of a definition, oldest first; without an id, those of all definitions of the kind."""
        with self._read() as connection:
            return self._versions(connection, kind, id)

    def _versions(self, connection: sa.Connection, kind: Kind, id: str | None = None) -> tuple[Definition, ...]:
        query = _definitions(self.workspace_id).where(DEFINITIONS.c.kind == kind)
        if id is not None:
            query = query.where(DEFINITIONS.c.id == id)
        rows = connection.execute(query.order_by(DEFINITIONS.c.id, DEFINITIONS.c.version))
        return tuple(_definition(row) for row in rows)

    def all_latest(self, kind: Kind) -> tuple[Definition, ...]:
        """Returns the newest version of every definition of a kind, ordered by id."""
        newest = (
            sa.select(DEFINITIONS.c.id, sa.func.max(DEFINITIONS.c.version).label("version"))
            .where(DEFINITIONS.c.workspace_id == self.workspace_id, DEFINITIONS.c.kind == kind)
            .group_by(DEFINITIONS.c.id)
            .subquery()
        )
        query = _definitions(self.workspace_id).join(
            newest,
            (DEFINITIONS.c.kind == kind)
            & (DEFINITIONS.c.id == newest.c.id)
            & (DEFINITIONS.c.version == newest.c.version),
        )
        with self._read() as connection:
            return tuple(_definition(row) for row in connection.execute(query.order_by(DEFINITIONS.c.id)))

    def registration(self, dataset_id: str, version: int) -> Registration | None:
        """Returns the registration of a dataset version; None for a version that came from a file."""
        with self._read() as connection:
            of_version = (REGISTRATIONS.c.dataset_id == dataset_id, REGISTRATIONS.c.version == version)
            return registration_of(connection, self.workspace_id, *of_version)

    def registrations(self, run_id: str | None = None) -> tuple[Registration, ...]:
        """Returns the registrations of a run, or of all runs."""
        with self._read() as connection:
            return self._registrations(connection, run_id)

    def _registrations(self, connection: sa.Connection, run_id: str | None = None) -> tuple[Registration, ...]:
        query = _registrations(self.workspace_id).order_by(REGISTRATIONS.c.run_id, REGISTRATIONS.c.seq)
        if run_id is not None:
            query = query.where(REGISTRATIONS.c.run_id == run_id)
        return tuple(Registration.model_validate(dict(row)) for row in connection.execute(query).mappings())


def _definitions(workspace_id: str) -> sa.Select[Any]:
    columns = [column for column in DEFINITIONS.c if column is not DEFINITIONS.c.workspace_id]
    return sa.select(*columns).where(DEFINITIONS.c.workspace_id == workspace_id)


def _newest(
    connection: sa.Connection, workspace_id: str, kind: Kind, id: str, *conditions: sa.ColumnElement[bool]
) -> Definition | None:
    query = _definitions(workspace_id).where(DEFINITIONS.c.kind == kind, DEFINITIONS.c.id == id, *conditions)
    row = connection.execute(query.order_by(DEFINITIONS.c.version.desc()).limit(1)).first()
    return None if row is None else _definition(row)


def add_version(connection: sa.Connection, workspace_id: str, kind: Kind, id: str, body: Json) -> int:
    """Adds the next version of a definition and returns its number."""
    newest = _newest(connection, workspace_id, kind, id)
    version = newest.version + 1 if newest else 1
    insert_version(connection, workspace_id, kind, id, version, body)
    return version


def insert_version(connection: sa.Connection, workspace_id: str, kind: Kind, id: str, version: int, body: Json) -> None:
    """Adds a version of a definition under its number."""
    connection.execute(
        sa.insert(DEFINITIONS).values(
            workspace_id=workspace_id,
            kind=kind,
            id=id,
            version=version,
            content_hash=content_hash(body),
            body=without_version(body),
            status=body.get("status"),
            created_at=now(),
        )
    )


def _definition(row: sa.Row[Any]) -> Definition:
    return Definition.model_validate(dict(row._mapping))


def _registrations(workspace_id: str) -> sa.Select[Any]:
    """With what the run says of each: its project and period."""
    columns = [column for column in REGISTRATIONS.c if column is not REGISTRATIONS.c.workspace_id]
    query = sa.select(*columns, *RUNS.c["project_id", "calendar_id", "period"]).join_from(REGISTRATIONS, RUNS)
    return query.where(REGISTRATIONS.c.workspace_id == workspace_id)


def registration_of(
    connection: sa.Connection, workspace_id: str, *conditions: sa.ColumnElement[bool]
) -> Registration | None:
    """Returns the registration that meets the conditions, in an open transaction."""
    row = connection.execute(_registrations(workspace_id).where(*conditions)).mappings().first()
    return None if row is None else Registration.model_validate(dict(row))
