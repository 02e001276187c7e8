"""The connection to the metadata store: its url, and transactions that are the same for SQLite and PostgreSQL.

A password comes from the environment or a file, never from YAML.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from tallybook.errors import RunError, StoreError
from tallybook.exit_codes import BUSY, UNAVAILABLE
from tallybook.model.state import canonical_json
from tallybook.secrets import HIDDEN, hide_secrets, names_secret, read_secret
from tallybook.store.sqlite import RESTORE, reading_engine, writing_engine

DEFAULT_FILE = Path(".tallybook") / "store.sqlite3"
URL_VARIABLE = "TALLYBOOK_STORE"
CREDENTIAL_VARIABLE = "TALLYBOOK_STORE_CREDENTIAL"
_FORMS = "a store is `sqlite:///path/to/file` or `postgresql://user@host/database`"

_WRITER_LOCK = 0x7A11_B00C
"""The advisory lock that allows one writer at a time on PostgreSQL, as on SQLite."""
_DISK_FULL = ("database or disk is full", "No space left on device")
_READ_ONLY = ("readonly database", "read-only transaction", "permission denied for table")
_ROOM = 1 << 20
_UNREADABLE = "unable to open database"
_LOCKED = "database is locked"
_UNREACHED = "check that its server runs and that the `store` setting is right, then try again"
_DAMAGED = ("file is not a database", "malformed")
_IDLE: dict[tuple[URL, bool], sa.Engine] = {}
"""Engines of closed stores, without connections. An engine has the SQL that it compiled, and each command and each run
opens the store anew."""
_MOST_IDLE = 16


def now() -> datetime:
    return datetime.now(UTC)


class Database:
    """Transactions that read, and transactions that write. A change that depends on what is recorded reads and writes
    inside one `_write`, so no other process can write in between."""

    def __init__(self, url: URL, *, look: bool = False) -> None:
        """With `look` nothing is written, so the file may be read-only."""
        self.url = url
        self._looks = look
        self.workspace_id = ""
        """The workspace whose state is read and written; set when the store is opened for one."""
        self.environment: str | None = None
        """The environment of that workspace; None for the workspace without one."""
        self.is_sqlite = url.get_backend_name() == "sqlite"
        idle = _IDLE.pop((url, look), None)
        self._engine = idle or _engine(url, look=look)
        self._writer = self._engine.execution_options(tallybook_writes=True)

    def __str__(self) -> str:
        return str(self.url.database) if self.is_sqlite else shown(self.url)

    def close(self) -> None:
        self._engine.dispose()
        if len(_IDLE) >= _MOST_IDLE:
            _IDLE.clear()
        _IDLE[self.url, self._looks] = self._engine

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _write(self, *, rebuild: bool = False) -> Iterator[sa.Connection]:
        """Opens a transaction that excludes other writers. `rebuild` switches foreign keys off, for migrations on
        SQLite."""
        with self._translated(), self._writer.execution_options(tallybook_rebuilds=rebuild).begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER_LOCK)))
            yield connection

    def _clock(self, connection: sa.Connection) -> datetime:
        """Returns the time of the clock that all users of the store share: that of the server or, for a file, that of
        this host."""
        if self.is_sqlite:
            return now()
        server_time: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return server_time.astimezone(UTC)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns errors of the driver into StoreError, except IntegrityError: callers know what it means."""
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            reason = without_secrets(" ".join(str(error.orig).split()), self.url)
            if not self.is_sqlite and (error.connection_invalidated or error.statement is None):
                raise StoreError(
                    f"the metadata store {self} cannot be reached: {reason}", _UNREACHED, exit=UNAVAILABLE
                ) from None
            raise self._explained(reason) from None
        except sqlite3.Error as error:
            raise self._explained(str(error)) from None
        except json.JSONDecodeError as error:
            raise StoreError(f"the metadata store {self} is damaged: {error}", RESTORE) from None

    def _explained(self, reason: str) -> StoreError:
        if any(sign in reason for sign in _DISK_FULL) or ("disk I/O error" in reason and self._has_no_room):
            return StoreError(
                f"the metadata store {self} cannot be written: the disk it is on is full",
                "free some space there and try again; everything recorded so far is kept",
                exit=UNAVAILABLE,
            )
        if _UNREADABLE in reason and self._looks:
            return StoreError(f"the metadata store {self} cannot be read: {reason}")
        if any(sign in reason for sign in (*_READ_ONLY, _UNREADABLE)) and not self._is_missing:
            return StoreError(
                f"the metadata store {self} cannot be written: {reason}",
                "commands that only read still work: `runs`, `datasets`, `plan`, `period` and `validate`",
            )
        if _LOCKED in reason:
            return StoreError(
                f"the metadata store {self} is locked by another process",
                "try again when that process has ended; everything recorded so far is kept",
                exit=BUSY,
            )
        if any(sign in reason for sign in _DAMAGED):
            return StoreError(f"the metadata store {self} is damaged: {reason}", RESTORE)
        return StoreError(f"the metadata store {self} failed: {reason}")

    @property
    def _has_no_room(self) -> bool:
        """True if the disk of an SQLite store is full. SQLite does not always say so."""
        folder = Path(str(self.url.database)).parent
        return self.is_sqlite and folder.is_dir() and shutil.disk_usage(folder).free < _ROOM

    @property
    def _is_missing(self) -> bool:
        return self.is_sqlite and not Path(str(self.url.database)).exists()


def _engine(url: URL, *, look: bool) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        make = reading_engine if look else writing_engine
        return make(Path(str(url.database)), json_serializer=canonical_json)
    try:
        return sa.create_engine(
            url,
            json_serializer=canonical_json,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10},
        )
    except ModuleNotFoundError as error:
        raise StoreError(
            "a PostgreSQL metadata store needs the psycopg package", "pip install 'tallybook[postgresql]'"
        ) from error


def store_url(setting: str | None, root: Path, environ: Mapping[str, str]) -> URL:
    """Returns the url of the store: from the environment, else the setting, else the default file."""
    given = environ.get(URL_VARIABLE)
    text = given or setting
    if text is None:
        return _sqlite(root / DEFAULT_FILE)
    url = _parsed(text)
    if url.get_backend_name() == "sqlite":
        return _sqlite(root / url.database) if url.database else _refuse("the store url names no file", _FORMS)
    if url.get_backend_name() != "postgresql":
        return _refuse(f"'{url.drivername}' is not a kind of metadata store", _FORMS)
    url = url.set(drivername="postgresql+psycopg")
    if not given and hide_secrets(text) != text:
        _refuse(
            "the setting `store` contains a password",
            f"leave it out and set {CREDENTIAL_VARIABLE} to env:NAME or file:PATH, or give the url in {URL_VARIABLE}",
        )
    reference = environ.get(CREDENTIAL_VARIABLE)
    return url.set(password=_secret(reference, root, environ)) if reference else url


def shown(url: URL) -> str:
    """Returns the url for messages: as users write it, without secrets."""
    plain = url.set(drivername=url.get_backend_name())
    hidden = plain.update_query_dict({name: HIDDEN for name in plain.query if names_secret(name)})
    return hidden.render_as_string(hide_password=True)


def without_secrets(text: str, url: URL) -> str:
    """Returns a driver's message with the passwords of the url hidden."""
    for secret in (url.password, *(value for name, value in url.query.items() if names_secret(name))):
        if isinstance(secret, str) and secret:
            text = text.replace(secret, HIDDEN)
    return text


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise StoreError(message, hint)


def _parsed(text: str) -> URL:
    if text.startswith("postgres://"):
        text = text.replace("postgres://", "postgresql://", 1)
    try:
        url = make_url(text)
        url.get_backend_name()
    except (ArgumentError, ValueError):
        _refuse("the store url cannot be read", _FORMS)
    return url


def _sqlite(file: Path) -> URL:
    return URL.create("sqlite", database=str(file))


def _secret(reference: str, root: Path, environ: Mapping[str, str]) -> str:
    try:
        return read_secret(reference, root, environ).reveal()
    except RunError as error:
        raise StoreError(f"{CREDENTIAL_VARIABLE}: {error.problem.message}", error.problem.hint) from None
