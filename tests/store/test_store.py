"""Which store is opened, by which revision of its tables, and what is refused without giving a secret away."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL

import tallybook.store
from tallybook.errors import StoreError
from tallybook.store.database import shown, store_url
from tallybook.store.store import REVISIONS, SQLITE_TABLES, VERSION_TABLE, Store, _migrate
from tallybook.store.tables import metadata

SECRET = "s3cr3t-word"


def test_the_default_is_a_file_in_the_workspace(tmp_path: Path) -> None:
    with Store.open(store_url(None, tmp_path, {})) as store:
        assert store.runs() == ()
    assert (tmp_path / ".tallybook" / "store.sqlite3").is_file()


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Store.open(store_url(None, tmp_path, {})) as store, store._write():
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / ".tallybook").iterdir()}
            assert modes == dict.fromkeys(["store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"], 0o600)
            assert stat.S_IMODE((tmp_path / ".tallybook").stat().st_mode) == 0o700
        (tmp_path / "shared").mkdir(mode=0o755)
        Store.open(store_url("sqlite:///shared/s.db", tmp_path, {})).close()
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("shared", "shared/s.db")]
        assert modes == [0o755, 0o600]
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("setting", "environ", "expected"),
    [
        ("sqlite:///state/x.db", {}, "sqlite:////ws/state/x.db"),
        ("sqlite:////abs/x.db", {}, "sqlite:////abs/x.db"),
        ("postgresql://me@host/db", {}, "postgresql+psycopg://me@host/db"),
        ("postgres://me@host/db", {}, "postgresql+psycopg://me@host/db"),
        ("sqlite:///x.db", {"TALLYBOOK_STORE": "postgresql://me:pw@host/db"}, "postgresql+psycopg://me:pw@host/db"),
        (
            "postgresql://me@host/db",
            {"TALLYBOOK_STORE_CREDENTIAL": "env:PW", "PW": "a@b"},
            "postgresql+psycopg://me:a%40b@host/db",
        ),
    ],
)
def test_urls(setting: str, environ: dict[str, str], expected: str) -> None:
    assert store_url(setting, Path("/ws"), environ).render_as_string(hide_password=False) == expected


def test_a_credential_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(f"{SECRET}\n")
    environ = {"TALLYBOOK_STORE_CREDENTIAL": "file:pw"}
    assert store_url("postgresql://me@host/db", tmp_path, environ).password == SECRET


@pytest.mark.parametrize(
    ("setting", "environ", "reason"),
    [
        (f"postgresql://me:{SECRET}@host/db", {}, "the setting `store` contains a password"),
        (f"postgresql://me@host/db?password={SECRET}", {}, "the setting `store` contains a password"),
        ("mysql://me@host/db", {}, "'mysql' is not a kind of metadata store"),
        ("sqlite://", {}, "names no file"),
        (f"{SECRET}:::", {}, "cannot be read"),
        ("postgresql://me@h/db", {"TALLYBOOK_STORE_CREDENTIAL": "env:GONE"}, "GONE is not set"),
        ("postgresql://me@h/db", {"TALLYBOOK_STORE_CREDENTIAL": "file:gone"}, "the secret file:gone cannot be read"),
        ("postgresql://me@h/db", {"TALLYBOOK_STORE_CREDENTIAL": SECRET}, "must be env:NAME or file:PATH"),
    ],
)
def test_refused_urls(setting: str, environ: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=reason) as caught:
        store_url(setting, tmp_path, environ)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@h/db",
        f"postgresql://me@h/db?password={SECRET}",
        f"postgresql://me@h/db?sslpassword={SECRET}",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    text = shown(store_url(None, Path(), {"TALLYBOOK_STORE": url}))
    assert SECRET not in text and text.startswith("postgresql://me")


def test_a_server_out_of_reach_is_a_clear_error_without_the_password(tmp_path: Path) -> None:
    environ = {"TALLYBOOK_STORE": f"postgresql://{SECRET}x:{SECRET}@/db?host={tmp_path}"}
    with pytest.raises(StoreError, match="the metadata store postgresql://") as caught:
        Store.open(store_url(None, tmp_path, environ))
    assert f":{SECRET}@" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("these are not the bytes of a database, however long they go on\n" * 100)
    with pytest.raises(StoreError, match="notes is damaged: file is not a database\n  hint: put back a copy"):
        Store.open(store_url("sqlite:///notes", tmp_path, {}))


def test_sqlite_is_upgraded_by_itself_and_kept_in_wal_mode(tmp_path: Path) -> None:
    url = URL.create("sqlite", database=str(tmp_path / "s.db"))
    with Store.open(url) as store, store._read() as connection:
        assert store.revision() == REVISIONS[-1]
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


def test_a_signal_ends_the_wait_for_a_locked_store(tmp_path: Path) -> None:
    """SQLite would wait for half a minute, and Python handles no signal until then."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    with Store.open(URL.create("sqlite", database=str(tmp_path / "s.db"))) as store:
        holder = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt), store._write():
                pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            holder.close()
        assert time.monotonic() - begun < 15
        with store._write() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


def test_postgresql_is_upgraded_only_when_asked(new_database: Callable[[], URL]) -> None:
    url = new_database()
    with pytest.raises(StoreError, match="has no tables yet\n  hint: run `tallybook store upgrade`"):
        Store.open(url)
    with Store(url) as store:
        store.upgrade()
        store.upgrade()
    with Store.open(url) as store:
        assert store.runs() == ()


def test_a_store_of_a_newer_version_is_refused(fresh_url: Callable[[], URL]) -> None:
    with Store.open(fresh_url()) as store:
        with store._write() as connection:
            connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
        try:
            for attempt in (lambda: Store.open(store.url), store.upgrade):
                with pytest.raises(StoreError, match="created by a newer version of tallybook"):
                    attempt()
        finally:
            with store._write() as connection:
                connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{REVISIONS[-1]}'"))


def test_the_migrations_make_the_tables_the_code_expects(store: Store) -> None:
    with store._read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_a_new_sqlite_store_is_what_the_migrations_make(golden: Callable[[Path, str], None]) -> None:
    with sa.create_engine("sqlite://").connect() as connection:
        _migrate(connection)
        connection.commit()
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        golden(SQLITE_TABLES, "".join(f"{_in_one_order(statement)}\n" for statement in raw.iterdump()))


def _in_one_order(statement: str) -> str:
    """The statement with the constraints of a table sorted: Alembic writes them in any order."""
    first, *lines = [line.rstrip(", ") for line in statement.splitlines()]
    if not lines:
        return statement
    constraints = sorted(line for line in lines[:-1] if line.startswith(("\tCONSTRAINT", "\tFOREIGN", "\tPRIMARY")))
    columns = [line for line in lines[:-1] if line not in constraints]
    return "\n".join([first, ",\n".join([*columns, *constraints]), lines[-1]])


def test_the_list_of_revisions_is_that_of_the_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(tallybook.store.__path__[0]) / "migrations"))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(script.revision for script in scripts)[::-1] == REVISIONS


def test_a_foreign_key_holds(store: Store) -> None:
    with pytest.raises(sa.exc.IntegrityError), store._write() as connection:
        connection.execute(sa.text("INSERT INTO snapshots (run_id, body, created_at) VALUES ('x', '{}', '2026-01-01')"))


def test_an_up_to_date_store_opens_without_alembic_or_pyspark(tmp_path: Path) -> None:
    Store.open(store_url(None, tmp_path, {})).close()
    code = (
        "import sys, pathlib; from tallybook.store.database import store_url; from tallybook.store.store import Store; "
        "Store.open(store_url(None, pathlib.Path(sys.argv[1]), {})).close(); "
        "print([name for name in ('alembic', 'pyspark', 'psycopg') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
