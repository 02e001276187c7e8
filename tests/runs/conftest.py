"""Workspaces to run: a fresh one for each test, and for each module one that has run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Said, Tally
from tests.kit.workspaces import Books
from tests.runs.forks import Forks

from tallybook.cli.main import main
from tallybook.runs.runner import RunResult


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """Never applied; needs no Spark."""
    return Books.at(tmp_path)


@pytest.fixture
def tally(capsys: pytest.CaptureFixture[str]) -> Tally:
    """Runs a command in a workspace."""

    def run(books: Books, *args: str) -> Said:
        capsys.readouterr()  # what the test itself made the library log
        code = main([*args, "--workspace", str(books.root)])
        shown = capsys.readouterr()
        return Said(args, code, shown.out, shown.err)

    return run


@pytest.fixture
def active(books: Books, spark: SparkSession) -> Books:
    """The close is active; nothing has run."""
    books.open().activate("close")
    return books


@pytest.fixture
def appending(active: Books) -> Books:
    """The close is active and appends to its ledger; nothing has run."""
    ledger = "columns: [id, tier, net, _period]"
    active.edit("close.yaml", ledger, f"{ledger}\n        mode: append")
    active.open().activate("close")
    return active


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Books, RunResult]:
    """January closed once. Tests only look at it."""
    books = Books.at(tmp_path_factory.mktemp("closed"))
    books.open().activate("close")
    return books, books.run()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """A process that makes runs in forks of itself."""
    process = Forks()
    yield process
    process.stop()
