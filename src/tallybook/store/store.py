"""The metadata store: one class that combines its parts, opens the store, and makes and upgrades its tables.

Alembic is imported only if there is something to migrate. A current store opens with one small query.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from sqlite3 import OperationalError as SqliteOperationalError
from time import sleep
from types import TracebackType
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL

from tallybook.errors import StoreError
from tallybook.store.batches import Batches
from tallybook.store.database import Database
from tallybook.store.lifecycle import ChangeStore, Periods
from tallybook.store.results import Results
from tallybook.store.retention import Retention
from tallybook.store.runs import Runs
from tallybook.store.sqlite import RESTORE, new_file, refuse_damaged
from tallybook.store.workspaces import ONLY_WORKSPACE, WorkspaceRef, Workspaces

_Answer = TypeVar("_Answer")

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011")
"""All revisions, oldest first; a test compares them with the scripts."""
VERSION_TABLE = "tallybook_version"
SQLITE_TABLES = Path(__file__).parent / "sqlite_tables.sql"
"""What all migrations together make of an empty SQLite file; a test compares the two."""


class Schema(Database):
    """Refuses a store whose tables have another version than this product."""

    def ensure_current(self) -> None:
        """Makes a missing SQLite store and upgrades an older one. A PostgreSQL store is shared, so only `store upgrade`
        upgrades it."""
        if self.is_sqlite and not self._file.exists():
            self.upgrade()
            return
        revision = self._known_revision()
        if revision == REVISIONS[-1]:
            return
        if not self.is_sqlite or revision is None:
            raise self._not_current(revision)
        self.upgrade()

    def check_current(self) -> None:
        """Raises StoreError unless the tables are those of this version. Changes nothing."""
        revision = self._known_revision()
        if revision != REVISIONS[-1]:
            raise self._not_current(revision)

    @property
    def _file(self) -> Path:
        return Path(str(self.url.database))

    def _known_revision(self) -> str | None:
        if self.is_sqlite:
            refuse_damaged(self._file)
        return self.revision()

    def _not_current(self, revision: str | None) -> StoreError:
        if revision is not None:
            state = "was created by an older version of tallybook"
        else:
            state = "is an SQLite database without the tables of a store" if self.is_sqlite else "has no tables yet"
        restore = f"; if it was a store before, {RESTORE}" if self.is_sqlite and revision is None else ""
        return StoreError(f"the metadata store {self} {state}", f"run `tallybook store upgrade`{restore}")

    def revision(self) -> str | None:
        """Returns the revision of the tables; None if there are none. Raises StoreError if it is newer than this
        product."""
        with self._read() as connection:
            return self._revision(connection)

    def upgrade(self) -> None:
        """Creates or upgrades the tables, in one transaction. Another process that does the same waits, and finds them
        current."""
        if self.is_sqlite:
            refuse_damaged(self._file)
            if not self._file.exists():
                self._make_file()
                return
            self._use_write_ahead_log()
        self._upgrade_tables()

    def _make_file(self) -> None:
        with new_file(self._file) as file:
            draft = type(self)(self.url.set(database=str(file)))
            try:
                draft._use_write_ahead_log()
                draft._create_tables()
            finally:
                draft.close()

    def _create_tables(self) -> None:
        """Creates the tables of an empty SQLite file as the migrations would, in a tenth of their time."""
        with self._translated():
            raw = self._engine.raw_connection()
            try:
                raw.cursor().executescript(SQLITE_TABLES.read_text(encoding="utf-8"))
            finally:
                raw.close()

    def _upgrade_tables(self) -> None:
        with self._write(rebuild=True) as connection:
            if self._revision(connection) != REVISIONS[-1]:
                _migrate(connection)
                if self.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                    raise StoreError(
                        f"the metadata store {self} is damaged: rows refer to others that are gone", RESTORE
                    )

    def _revision(self, connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        revision = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
        if revision is not None and revision not in REVISIONS:
            raise StoreError(
                f"the metadata store {self} was created by a newer version of tallybook (its tables are at {revision}, "
                f"this version knows up to {REVISIONS[-1]})",
                "upgrade tallybook, or use another store",
            )
        return revision

    def _use_write_ahead_log(self) -> None:
        """Lets readers read while someone writes. The file keeps the mode. Changing it needs exclusive access, for
        which SQLite does not wait, so this tries several times."""
        with self._translated():
            for pause in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 0.0):
                raw = self._engine.raw_connection()
                try:
                    raw.cursor().execute("PRAGMA journal_mode = WAL")
                    return
                except SqliteOperationalError:
                    if not pause:
                        raise
                    sleep(pause)
                finally:
                    raw.close()


class Store(Schema, Workspaces, ChangeStore, Periods, Runs, Results, Retention, Batches):
    """Versions of definitions, the state of projects and periods, and all runs, of one workspace.

    Commands that write use `Store.open(url)`: it checks the tables, and records runs as failed whose process has died.
    `Store.look(url)` changes nothing. `Store(url)` does not check the tables, for commands about the store itself.
    """

    @classmethod
    def look(cls, url: URL, workspace: WorkspaceRef = ONLY_WORKSPACE) -> Store | None:
        """Opens a store to read it. Nothing is made or changed, so it may be read-only. Returns None if the SQLite file
        does not exist, or the store has no such workspace."""
        store = cls._existing(url)
        if store is None or store._closed_on_error(lambda: store.enter_to_look(workspace)):
            return store
        store.close()
        return None

    @classmethod
    def environment_of(cls, url: URL, workspace: WorkspaceRef, run_id: str) -> str | None:
        """Returns the environment of a run of the workspace, whichever it is; that of `workspace` if there is no such
        run."""
        store = cls._existing(url)
        if store is None:
            return workspace.environment
        with store:
            return store.run_environment(workspace, run_id)

    @classmethod
    def id_from(cls, url: URL, workspace: WorkspaceRef, beginning: str) -> str:
        """Returns the id of the run or batch of the workspace that begins with the text; the text itself if there is
        none. Raises RunNotFound if there are several."""
        store = cls._existing(url)
        if store is None:
            return beginning
        with store:
            return store.full_id(workspace, beginning)

    @classmethod
    def _existing(cls, url: URL) -> Store | None:
        """Opens a store to read it; None if its SQLite file does not exist."""
        if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
            refuse_damaged(Path(str(url.database)))
            return None
        store = cls(url, look=True)
        store._closed_on_error(store.check_current)
        return store

    @classmethod
    def open(cls, url: URL, workspace: WorkspaceRef = ONLY_WORKSPACE) -> Store:
        """Opens a store, and makes or upgrades it if needed."""
        store = cls(url)

        def prepare() -> None:
            store.ensure_current()
            store.enter(workspace)
            store.fail_dead_runs()

        store._closed_on_error(prepare)
        return store

    def _closed_on_error(self, work: Callable[[], _Answer]) -> _Answer:
        try:
            return work()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _migrate(connection: sa.Connection, revision: str = "head") -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, revision)
