"""A run killed with SIGKILL at any moment: the old output or the new, a run that is known to have failed, and a retry
that finishes the job with no row twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books, parquet_rows
from tests.runs.forks import MOMENTS, Forks, Job

RECORDING = ("committed", "registering", "registered", "published", "completing")
"""The moments between a commit or publication and its record."""
CHOSEN = pytest.mark.fault("SIGKILL at a chosen step of a run before its commit", "old rows, whole; retry completed")
AFTER_COMMIT = pytest.mark.fault("SIGKILL between commit and record", "new rows, whole; retry completed, nothing twice")
TRIES = [
    pytest.param(
        moment,
        turn,
        marks=[
            AFTER_COMMIT if moment in RECORDING else CHOSEN,
            *([] if (moment, turn) in (("writing", 0), ("committed", 0)) else [pytest.mark.long]),
        ],
    )
    for moment in MOMENTS
    for turn in range(4 if moment in RECORDING else 1)
]


@dataclass
class Killed:
    """A workspace whose January is closed again and again, each time with another amount."""

    books: Books
    forks: Forks
    amounts: list[int] = field(default_factory=lambda: [10])

    def ledger(self) -> list[tuple[Any, ...]]:
        return [(row[0], row[2]) for row in self.books.ledger()]

    def expected(self, amount: int) -> list[tuple[Any, ...]]:
        return [("a", Decimal(amount * 9) / 10), ("b", Decimal(18))]

    def kill(self, moment: str) -> str:
        """Changes the input, kills a run of it, and returns the run's id."""
        before, after = self.amounts[-1], self.amounts[-1] + 10
        self.books.edit("data/sales/2026-01.csv", f"a,EMEA,{before}\n", f"a,EMEA,{after}\n")
        self.amounts.append(after)
        assert self.forks.run(Job(str(self.books.root), "2026-01", dies=moment)) == ["killed"]
        with self.books.store() as store:
            return store.runs(limit=1)[0].id


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, forks: Forks, spark: SparkSession) -> Iterator[Killed]:
    books = Books.at(tmp_path_factory.mktemp("killed"))
    books.open().activate("close")
    books.run()
    yield Killed(books, forks)


@pytest.mark.parametrize(("moment", "turn"), TRIES)
def test_killed(killed: Killed, moment: str, turn: int) -> None:
    books = killed.books
    run_id = killed.kill(moment)
    old, new = (killed.expected(amount) for amount in killed.amounts[-2:])
    committed = moment not in ("loading", "computing", "writing", "committing")
    assert killed.ledger() == (new if committed else old)
    assert len(parquet_rows(books.root / "reports" / "2026-01", "id")) == 5
    with books.store() as store:
        run = store.run(run_id)
    assert (run.status, run.problem and run.problem["type"]) == ("failed", "InternalError")

    done = books.open().retry(run_id)
    assert (done.run.status, done.run.attempt) == ("completed", 2)
    assert [output.rows_written for output in done.outputs] == [2, 5]
    assert killed.ledger() == new
    closes = len(killed.amounts)
    assert len(list((books.root / "warehouse" / "ledger" / "_delta_log").glob("*.json"))) == closes
    assert done.outputs[0].dataset_version == closes, "registered once"
    assert len(parquet_rows(books.root / "reports" / "2026-01", "id")) == 5
