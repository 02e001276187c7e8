"""Ten real processes at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.engine import URL
from tests.kit.workspaces import JANUARY, Books
from tests.runs.forks import Forks, Job

from tallybook.model.location import Location
from tallybook.store.store import Store

PERIODS = [f"2026-{month:02}" for month in range(1, 11)]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Books:
    """A workspace whose close is active, with ten months of data."""
    books = Books.at(tmp_path)
    if request.param == "postgresql":
        new_database: Callable[[], URL] = request.getfixturevalue("new_database")
        url = new_database()
        with Store(url) as store:
            store.upgrade()
        books.edit("tallybook.yaml", "name: tiny\n", f"name: tiny\nstore: {url.render_as_string()}\n")
    for number, period in enumerate(PERIODS[2:], start=3):
        (tmp_path / "data" / "sales" / f"{period}.csv").write_text(f"id,region,amount\ne{number},EMEA,{number}\n")
    books.open().activate("close")
    return books


@pytest.mark.long
def test_ten_processes_for_one_period(shared: Books, forks: Forks) -> None:
    outcomes = forks.run(*[Job(str(shared.root), "2026-01")] * 10)
    assert sorted(outcomes) == ["ConcurrentRun"] * 9 + ["completed"]
    with shared.store() as store:
        assert [run.status for run in store.runs()] == ["completed"]
    assert shared.ledger() == JANUARY
    assert not (shared.root / "warehouse" / "ledger" / "_delta_log" / f"{1:020}.json").exists()


def test_two_processes_for_two_periods(shared: Books, forks: Forks) -> None:
    check_periods(shared, forks, PERIODS[:2])


@pytest.mark.long
def test_ten_processes_for_ten_periods(shared: Books, forks: Forks) -> None:
    check_periods(shared, forks, PERIODS)


def check_periods(books: Books, forks: Forks, periods: list[str]) -> None:
    """All write to the same table and register the same dataset; each version has the rows of its own run."""
    assert forks.run(*(Job(str(books.root), period) for period in periods)) == ["completed"] * len(periods)
    with books.store() as store:
        registered = {entry.version: Location.from_json(entry.reads) for entry in store.registrations()}
        made_by = {version: store.registration("ledger", version) for version in range(1, len(periods) + 1)}
        of_run = {run.id: run.period for run in store.runs()}
    assert len(registered) == len(periods)
    for version, made in made_by.items():
        assert made is not None
        rows = books.ledger(registered[version].version)
        assert {row[3] for row in rows} == {of_run[made.run_id]}
    assert {path.name for path in (books.root / "reports").iterdir()} == set(periods)
