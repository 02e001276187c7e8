"""The connection to the metadata store: one way to read, one way to write, for SQLite and PostgreSQL alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.util import LRUCache

from tallybook.errors import StoreError
from tallybook.private import make_private_file, make_private_folder
from tallybook.store.url import shown, without_secrets

_BUSY_TIMEOUT_MS = 30_000
_WRITER_LOCK = 0x7A11_B00C
"""The advisory lock that makes PostgreSQL, like SQLite, let one writer in at a time."""
_DISK_FULL = ("database or disk is full", "No space left on device")
_COMPILED: dict[str, Any] = {"compiled_cache": LRUCache(500)}
"""Statements turned into SQL once for the process: each command and each run opens a store of its own."""


def canonical_json(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no spaces. Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def now() -> datetime:
    return datetime.now(UTC)


class Database:
    """An engine with two doors. What is read and then written happens inside one `_write`, so no other writer of
    any process can come in between."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._engine = _sqlite_engine(url) if self.is_sqlite else _postgresql_engine(url)
        self._writer = self._engine.execution_options(tallybook_writes=True)

    def __str__(self) -> str:
        return str(self.url.database) if self.is_sqlite else shown(self.url)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        with self._translated(), self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER_LOCK)))
            yield connection

    def _clock(self, connection: sa.Connection) -> datetime:
        """The present moment by the one clock that all users of the store share: the server's, or for a file the
        host's."""
        if self.is_sqlite:
            return now()
        moment: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """A driver's failure as a StoreError; a broken constraint stays what it is, callers know its meaning."""
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._explained(error) from None

    def _explained(self, error: DBAPIError) -> StoreError:
        reason = without_secrets(str(error.orig).strip(), self.url)
        if any(sign in reason for sign in _DISK_FULL):
            return StoreError(
                f"the metadata store {self} cannot be written: the disk it is on is full",
                "free some space there and try again; what was recorded before is still there",
            )
        return StoreError(f"the metadata store {self} failed: {reason}")


def _sqlite_engine(url: URL) -> sa.Engine:
    assert url.database is not None
    try:
        make_private_folder(Path(url.database).parent)
    except OSError as error:
        raise StoreError(f"the folder of the metadata store cannot be made: {error}") from error
    engine = sa.create_engine(url, json_serializer=canonical_json, execution_options=_COMPILED)
    event.listen(engine, "do_connect", lambda *_: _make_file(url))
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_file(url: URL) -> None:
    """SQLite would make a file that others can read; the files beside it take the mode of this one."""
    try:
        make_private_file(Path(str(url.database)))
    except OSError:
        return  # SQLite meets the same, and says it


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    """Python's driver would begin late and as a reader; a writer takes its lock first, so it never has to give up
    half-way."""
    writes = connection.get_execution_options().get("tallybook_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgresql_engine(url: URL) -> sa.Engine:
    try:
        return sa.create_engine(
            url,
            json_serializer=canonical_json,
            execution_options=_COMPILED,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10},
        )
    except ModuleNotFoundError as error:
        raise StoreError(
            "a PostgreSQL metadata store needs the psycopg package", "pip install 'tallybook[postgresql]'"
        ) from error
