"""The version of the store's tables: recognised at every opening, brought up to date by Alembic.

Alembic is imported only when there is something to migrate; an up-to-date store opens with one small query.
"""

from __future__ import annotations

from pathlib import Path
from sqlite3 import OperationalError as SqliteOperationalError
from time import sleep

import sqlalchemy as sa

from tallybook.errors import StoreError
from tallybook.store.database import Database

REVISIONS = ("0001", "0002")
"""All revisions, oldest first; a test compares them with the scripts."""
VERSION_TABLE = "tallybook_version"


class Schema(Database):
    """Opens only a store whose tables this version of the product understands."""

    def ensure_current(self) -> None:
        """Upgrades an SQLite store by itself; a PostgreSQL store is shared, so its upgrade has to be asked for."""
        revision = self.revision()
        if revision == REVISIONS[-1]:
            return
        if not self.is_sqlite:
            state = "has no tables yet" if revision is None else "was made by an older version of tallybook"
            raise StoreError(f"the metadata store {self} {state}", "run `tallybook store upgrade`")
        self.upgrade()

    def revision(self) -> str | None:
        """The revision the store is at, None when it has no tables; a newer one than this product's is refused."""
        with self._read() as connection:
            return self._revision(connection)

    def upgrade(self) -> None:
        """Brings the tables up to date, in one transaction; whoever comes at the same time waits and finds it done."""
        if self.is_sqlite:
            self._use_write_ahead_log()
        with self._write() as connection:
            if self._revision(connection) != REVISIONS[-1]:
                _migrate(connection)

    def _revision(self, connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        revision = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
        if revision is not None and revision not in REVISIONS:
            raise StoreError(
                f"the metadata store {self} was made by a newer version of tallybook (its tables are at {revision}, "
                f"this version knows up to {REVISIONS[-1]})",
                "upgrade tallybook, or use another store",
            )
        return revision

    def _use_write_ahead_log(self) -> None:
        """Lets readers read while someone writes. The mode stays with the file; changing it needs a moment alone,
        for which SQLite does not wait by itself."""
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


def _migrate(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, "head")
