"""Definitions as immutable versions, recorded from files."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from tallybook.model.state import Definition, Json, Kind, Recorded
from tallybook.store.database import Database, canonical_json, now
from tallybook.store.tables import DEFINITIONS, REGISTRATIONS

_FROM_FILES = ~sa.exists().where(
    DEFINITIONS.c.kind == "dataset",
    REGISTRATIONS.c.workspace_id == DEFINITIONS.c.workspace_id,
    REGISTRATIONS.c.dataset_id == DEFINITIONS.c.id,
    REGISTRATIONS.c.version == DEFINITIONS.c.version,
)


def content_hash(body: Json) -> str:
    """What tells one version's text from another's. The number the system counts is no part of the text."""
    return sha256(canonical_json(_text(body)).encode()).hexdigest()


def _text(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != "version"}


class Definitions(Database):
    """Every version ever made of every definition."""

    def record(self, kind: Kind, id: str, body: Json) -> Recorded:
        """The version of a definition as its file says it now; a new one if the text changed."""
        return self.record_all([(kind, id, body)])[0]

    def record_all(self, bodies: Iterable[tuple[Kind, str, Json]]) -> tuple[Recorded, ...]:
        """Records a whole workspace at once: all of it or nothing."""
        with self._write() as connection:
            return tuple(self._record(connection, kind, id, body) for kind, id, body in bodies)

    def _record(self, connection: sa.Connection, kind: Kind, id: str, body: Json) -> Recorded:
        """Compared with the latest version that came from a file, so that registering an output under the id of a
        declared dataset does not make the unchanged file look changed."""
        declared = _newest(connection, self.workspace_id, kind, id, _FROM_FILES)
        if declared is not None and declared.content_hash == content_hash(body):
            return Recorded(kind=kind, id=id, version=declared.version, new=False)
        version = add_version(connection, self.workspace_id, kind, id, body)
        self._recorded(connection, kind, id, version, declared.body if declared else None, _text(body))
        return Recorded(kind=kind, id=id, version=version, new=True)

    def _recorded(
        self, connection: sa.Connection, kind: Kind, id: str, version: int, old: Json | None, new: Json
    ) -> None:
        """Called in the same transaction for each new version."""

    def definition(self, kind: Kind, id: str, version: int) -> Definition | None:
        """One version, None when there is none."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id, DEFINITIONS.c.version == version)

    def latest(self, kind: Kind, id: str) -> Definition | None:
        """The newest version, wherever it came from. Its `status` is the definition's: a dataset whose newest
        version is disabled is disabled, older versions or not."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id)

    def declared(self, kind: Kind, id: str) -> Definition | None:
        """The newest version that came from a file: what a file is compared with."""
        with self._read() as connection:
            return _newest(connection, self.workspace_id, kind, id, _FROM_FILES)

    def all_declared(self) -> dict[tuple[Kind, str], Definition]:
        """The newest version that came from a file, of every definition that has one."""
        query = _definitions(self.workspace_id).where(_FROM_FILES).order_by(DEFINITIONS.c.version)
        with self._read() as connection:
            return {(found.kind, found.id): found for found in map(_definition, connection.execute(query))}

    def versions(self, kind: Kind, id: str | None = None) -> tuple[Definition, ...]:
        """All versions of one definition, oldest first; without an id, of each definition of the kind."""
        query = _definitions(self.workspace_id).where(DEFINITIONS.c.kind == kind)
        if id is not None:
            query = query.where(DEFINITIONS.c.id == id)
        with self._read() as connection:
            rows = connection.execute(query.order_by(DEFINITIONS.c.id, DEFINITIONS.c.version))
            return tuple(_definition(row) for row in rows)

    def all_latest(self, kind: Kind) -> tuple[Definition, ...]:
        """The newest version of every definition of a kind, by id."""
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
    connection.execute(
        sa.insert(DEFINITIONS).values(
            workspace_id=workspace_id,
            kind=kind,
            id=id,
            version=version,
            content_hash=content_hash(body),
            body=_text(body),
            status=body.get("status"),
            created_at=now(),
        )
    )
    return version


def _definition(row: sa.Row[Any]) -> Definition:
    return Definition.model_validate(dict(row._mapping))
