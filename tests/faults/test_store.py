"""A store that is locked or gone while a run needs it: a clear problem, old files as they were, and a retry."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL
from tests.kit.workspaces import FOREIGN, JANUARY, AtStep, Books, contents

from tallybook.errors import StoreError, TallybookError
from tallybook.store import sqlite
from tallybook.store.store import Store

LOCKED, GONE = "the store is locked", "the store is gone"


def file_of(books: Books) -> Path:
    return books.root / ".tallybook" / "store.sqlite3"


@contextmanager
def unharmed(books: Books) -> Iterator[None]:
    """A run completes before the block; what the block does leaves its files as they are."""
    books.run()
    before = [contents(books.root / folder) for folder in ("warehouse", "reports")]
    yield
    assert [contents(books.root / folder) for folder in ("warehouse", "reports")] == before


def store_error(books: Books, **options: object) -> str:
    """The message of a run that ends because of the store."""
    with pytest.raises(TallybookError) as failed:
        books.run(**options)
    said = str(failed.value)
    assert isinstance(failed.value, StoreError) and "hint: " in said, said
    assert not any(word in said for word in (*FOREIGN, "InternalError", "sqlite3.", "psycopg")), said
    return said


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another process holds the store for writing."""
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits half a second for a lock instead of half a minute."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 500)


@pytest.mark.fault(LOCKED, "StoreError; old files as they were; next run completed")
def test_locked_before_a_run(active: Books, impatient: None) -> None:
    with unharmed(active), locked(file_of(active)):
        assert "is locked by another process" in store_error(active)
    assert active.run().run.status == "completed"


@pytest.mark.fault(LOCKED, "StoreError; old files as they were; retry completed")
@pytest.mark.parametrize("seq", [30, pytest.param(10, marks=pytest.mark.long)])
def test_locked_during_a_run(active: Books, impatient: None, seq: int) -> None:
    with unharmed(active):
        lock = locked(file_of(active))
        assert "is locked by another process" in store_error(active, observers=[AtStep(seq, lock.__enter__)])
        lock.__exit__(None, None, None)
    active.retry()
    assert active.ledger() == JANUARY


@pytest.mark.fault(GONE, "StoreError; old files as they were; retry completed with the store put back")
@pytest.mark.long
@pytest.mark.parametrize("seq", [30, 10])
def test_gone_during_a_run(active: Books, tmp_path: Path, seq: int) -> None:
    aside = tmp_path / "aside"

    def take_away() -> None:
        aside.mkdir()
        for part in file_of(active).parent.glob("store.sqlite3*"):
            part.rename(aside / part.name)

    with unharmed(active):
        assert "is gone" in store_error(active, observers=[AtStep(seq, take_away)])
    assert not file_of(active).exists(), "no other store replaces it"
    for part in aside.iterdir():
        part.rename(file_of(active).parent / part.name)
    active.retry()
    assert active.ledger() == JANUARY


@pytest.fixture
def server(active: Books, new_database: Callable[[], URL]) -> Iterator[Callable[[bool], None]]:
    """The store is on PostgreSQL; called with False, the server ends its connections and takes no more."""
    url = new_database()
    with Store(url) as store:
        store.upgrade()
    active.edit("tallybook.yaml", "name: tiny\n", f"name: tiny\nstore: {url.render_as_string()}\n")
    active.open().activate("close")
    engine = sa.create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")

    def allow(connections: bool) -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS {connections}")
            if not connections:
                ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                connection.exec_driver_sql(ended, (url.database,))

    yield allow
    engine.dispose()


@pytest.mark.long
@pytest.mark.fault(GONE, "StoreError; old files as they were; retry completed")
def test_a_server_that_is_gone_during_a_run(active: Books, server: Callable[[bool], None]) -> None:
    with unharmed(active):
        assert "cannot be reached" in store_error(active, observers=[AtStep(30, lambda: server(False))])
        server(True)
    active.retry()
    assert active.ledger() == JANUARY


@pytest.mark.fault(GONE, "the run finds it again, and completed")
def test_a_server_that_comes_back_during_a_run(active: Books, server: Callable[[bool], None]) -> None:
    def restart() -> None:
        server(False)
        server(True)

    assert active.run(observers=[AtStep(30, restart)]).run.status == "completed"
    assert active.ledger() == JANUARY
