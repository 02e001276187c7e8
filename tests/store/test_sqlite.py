"""Store files that lost their content, and store files that can only be read."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL
from tests.faults.disks import read_only
from tests.store.kit import record

from tallybook.errors import RunError, StoreError
from tallybook.model.run import Run
from tallybook.store.active import current_owner
from tallybook.store.database import store_url
from tallybook.store.store import VERSION_TABLE, Store
from tallybook.store.workspaces import ONLY_WORKSPACE

DAMAGED = pytest.mark.fault("the store is damaged", "StoreError; no other store takes its place")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with a locked period, closed cleanly."""
    with Store.open(store_url(None, tmp_path, {})) as store:
        store.set_period_status("gregorian", "2026-01", "closed")
        store.set_period_status("gregorian", "2026-01", "locked")
    return tmp_path / ".tallybook" / "store.sqlite3"


def opened(file: Path) -> list[Callable[[], object]]:
    """Every way to open the store of a workspace."""
    root = file.parents[1]
    return [
        lambda: Store.open(store_url(None, root, {})),
        lambda: Store.look(store_url(None, root, {})),
        Store(store_url(None, root, {})).upgrade,
    ]


@DAMAGED
def test_an_empty_file_is_not_made_anew(file: Path) -> None:
    os.truncate(file, 0)
    for attempt in opened(file):
        with pytest.raises(StoreError, match=r"store.sqlite3 is empty: its content is lost\n  hint: put back a copy"):
            attempt()
    assert file.stat().st_size == 0


@DAMAGED
@pytest.mark.parametrize("keep", [1, 16, 100, 1024, 4096])
def test_a_truncated_file_is_damaged(file: Path, keep: int) -> None:
    os.truncate(file, keep)
    for attempt in opened(file):
        with pytest.raises(StoreError, match=r"store.sqlite3 is damaged: .*\n  hint: put back a copy"):
            attempt()
    assert file.stat().st_size == keep


@DAMAGED
def test_bytes_that_were_overwritten_are_noticed(file: Path) -> None:
    with file.open("r+b") as handle:
        handle.seek(1024)
        handle.write(b"\xff" * 60_000)
    for attempt in opened(file):
        with pytest.raises(StoreError, match="is damaged"):
            attempt()


def test_a_text_that_is_no_json_any_more(file: Path) -> None:
    with Store.open(store_url(None, file.parents[1], {})) as store:
        record(store, "dataset", "orders", {"id": "orders"})
        with store._write() as connection:
            connection.execute(sa.text("DROP TRIGGER definitions_no_update"))
            connection.execute(sa.text("UPDATE definitions SET body = '{\"id\": '"))
        with pytest.raises(StoreError, match="is damaged"):
            store.latest("dataset", "orders")


def test_a_log_without_its_store(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    log = file.with_name("store.sqlite3-wal")
    log.write_bytes(b"pages of the store that is gone")
    for attempt in opened(file):
        with pytest.raises(StoreError, match=r"is gone, but its log store\.sqlite3-wal still exists"):
            attempt()
    assert not file.exists()
    log.unlink()
    Store.open(store_url(None, file.parents[1], {})).close()


def test_another_database_is_not_taken_for_a_store(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE invoices (id)")
    for open_it in (Store.open, Store.look):
        with pytest.raises(StoreError, match="without the tables of a store\n  hint: run `tallybook store upgrade`"):
            open_it(store_url("sqlite:///other.db", tmp_path, {}))
    Store(store_url("sqlite:///other.db", tmp_path, {})).upgrade()
    Store.open(store_url("sqlite:///other.db", tmp_path, {})).close()


def test_looking_changes_nothing(file: Path, tmp_path: Path) -> None:
    """Neither are tables upgraded nor runs ended."""
    before = file.read_bytes()
    with Store.look(store_url(None, tmp_path, {})) as store:  # type: ignore[union-attr]  # the file is there
        assert store.period_status("gregorian", "2026-01") == "locked"
    assert file.read_bytes() == before
    assert Store.look(store_url(None, tmp_path / "nothing", {})) is None
    assert not (tmp_path / "nothing").exists()
    with Store.open(store_url(None, tmp_path, {})) as store, store._write() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    with pytest.raises(StoreError, match="an older version of tallybook\n  hint: run `tallybook store upgrade`"):
        Store.look(store_url(None, tmp_path, {}))


def test_looking_ends_no_runs(store: Store, new_run: Callable[..., Run]) -> None:
    dead = new_run(owner=current_owner().model_copy(update={"pid": 2**22 + 1}))
    with Store(store.url, look=True) as looked:
        assert looked.enter_to_look(ONLY_WORKSPACE)
        assert [run.id for run in looked.dead_runs()] == [dead.id]
    assert store.run(dead.id).status == "queued"


@pytest.mark.parametrize("log", ["merged", "left behind", "in use"])
def test_a_read_only_store_can_be_looked_at(file: Path, tmp_path: Path, log: str) -> None:
    if log == "left behind":
        code = "import os, sys; from tests.store.test_sqlite import close_february as c; c(sys.argv[1]); os._exit(0)"
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        file.with_name("store.sqlite3-shm").unlink()
        assert file.with_name("store.sqlite3-wal").stat().st_size
    writer = close_february(str(tmp_path)) if log == "in use" else None
    with read_only(file.parent):
        with Store.look(store_url(None, tmp_path, {})) as store:  # type: ignore[union-attr]  # the file is there
            assert store.period_status("gregorian", "2026-01") == "locked"
            assert store.period_status("gregorian", "2026-02") == ("open" if log == "merged" else "closed")
            with pytest.raises(StoreError, match="cannot be written"):
                store.set_period_status("gregorian", "2026-03", "closed")
        with pytest.raises((StoreError, RunError), match=r"store\.sqlite3 cannot be written: "):
            Store.open(store_url(None, tmp_path, {})).set_period_status("gregorian", "2026-03", "closed")
    if writer is not None:
        writer.close()


def close_february(root: str) -> Store:
    store = Store.open(store_url(None, Path(root), {}))
    store.set_period_status("gregorian", "2026-02", "closed")
    return store


def test_a_store_that_cannot_be_made(tmp_path: Path) -> None:
    with read_only(tmp_path), pytest.raises(StoreError, match=r"store\.sqlite3 cannot be created: "):
        Store.open(store_url(None, tmp_path, {}))


def test_a_new_store_appears_whole(tmp_path: Path) -> None:
    """No other process finds a file without tables, and nothing is left beside it."""
    Store.open(store_url(None, tmp_path, {})).close()
    folder = tmp_path / ".tallybook"
    assert [entry.name for entry in folder.iterdir()] == ["store.sqlite3"]
    assert (folder / "store.sqlite3").stat().st_mode & 0o777 == 0o600
    assert Store(URL.create("sqlite", database=str(folder / "store.sqlite3"))).revision() is not None
