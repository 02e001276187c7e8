"""Every test of the store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL
from tests.store.kit import record

from tallybook.model.run import DatasetUse, Run, Snapshot
from tallybook.store.store import Store
from tallybook.store.tables import metadata


@pytest.fixture(scope="session")
def migrated(new_database: Callable[[], URL]) -> URL:
    """A PostgreSQL database with the store's tables."""
    url = new_database()
    with Store(url) as store:
        store.upgrade()
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite store with its tables and nothing else, to be copied."""
    file = tmp_path_factory.mktemp("template") / "store.sqlite3"
    with Store(URL.create("sqlite", database=str(file))) as store:
        store.upgrade()
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], URL]:
    """Gives an empty store each time it is called."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")
        count = iter(range(100_000))

        def copied() -> URL:
            file = shutil.copy(template, tmp_path / f"store{next(count)}.sqlite3")
            return URL.create("sqlite", database=str(file))

        return copied
    url: URL = request.getfixturevalue("migrated")
    return lambda: _emptied(url)


def _emptied(url: URL) -> URL:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        names = ", ".join(table.name for table in metadata.sorted_tables if table.name != "id_clock")
        connection.exec_driver_sql(f"TRUNCATE {names}")
        connection.exec_driver_sql("UPDATE id_clock SET last_ms = 0")
    engine.dispose()
    return url


def _project(**changes: Any) -> dict[str, Any]:
    operation = {"seq": 1, "name": "Keep", "type": "update", "selector": "amount > 0", "arguments": {}}
    body = {"id": "close", "name": "Close", "input_dataset_id": "orders", "operations": [operation]}
    return body | changes


def _dataset(*columns: str) -> dict[str, Any]:
    table = {"name": "orders", "columns": [{"name": column, "type": "string"} for column in columns or ("tier",)]}
    return {"id": "orders", "name": "Orders", "status": "active", "main_table": table}


@pytest.fixture(scope="session")
def project_body() -> Callable[..., dict[str, Any]]:
    """Makes the body of a project with one operation; keywords replace its keys."""
    return _project


@pytest.fixture(scope="session")
def dataset_body() -> Callable[..., dict[str, Any]]:
    """Makes the body of a dataset with the columns named."""
    return _dataset


@pytest.fixture(scope="session")
def snapshot() -> Snapshot:
    return Snapshot(
        project=_project(),
        project_version=1,
        period={"identifier": "2026-01"},
        as_of=date(2026, 1, 1),
        run_timestamp=datetime(2026, 2, 1, tzinfo=UTC),
        datasets=(DatasetUse(dataset_id="orders", dataset_version=1),),
        resolver_snapshots=(),
        engine_version="1",
    )


@pytest.fixture
def new_run(store: Store) -> Callable[..., Run]:
    """Creates a run of the recorded, active project `close`."""
    record(store, "dataset", "orders", _dataset())
    record(store, "project", "close", _project())
    store.activate("close", 1, 1)

    def create(period: str = "2026-01", **facts: Any) -> Run:
        given = {"calendar_id": "gregorian", "as_of": date(2026, 1, 1)} | facts
        return store.create_run("close", given.pop("project_version", 1), period, **given)

    return create


@pytest.fixture
def store(fresh_url: Callable[[], URL]) -> Iterator[Store]:
    with Store.open(fresh_url()) as opened:
        yield opened
