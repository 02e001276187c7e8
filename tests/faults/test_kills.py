"""SIGKILL at random moments of a run. The output has all old rows or all new ones, and a retry completes the run."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books, delta_rows, parquet_rows
from tests.runs.forks import Forks, Job

from tallybook.errors import RunError

SALES = "data/sales/2026-01.csv"
Rows = Counter[tuple[str, Decimal]]
SERIES = {
    "delta-overwrite": ("{datasource_id: warehouse, table: ledger}", "overwrite"),
    "delta-append": ("{datasource_id: warehouse, table: ledger}", "append"),
    "parquet-overwrite": ("{location: {path: ledger, format: parquet}}", "overwrite"),
    "csv-append": ("{location: {path: ledger, format: csv}}", "append"),
}
"""The destination and mode of the one output of a run."""
SEEDS = range(20)
OUTCOME = "old rows or new rows, whole; retry completed"


class Series:
    """A project that runs again and again for one period, each time with another amount."""

    def __init__(self, books: Books, forks: Forks, name: str) -> None:
        self.books, self.forks, self.name = books, forks, name
        destination, self.mode = SERIES[name]
        books.edit(
            "close.yaml", "{datasource_id: warehouse, table: ledger}", f"{destination}\n        mode: {self.mode}"
        )
        books.edit("close.yaml", "        register_as_dataset: ledger\n", "")
        file = books.root / "close.yaml"
        file.write_text(file.read_text().partition("    - seq: 40")[0])
        books.open().activate("close")
        self.amount, self.expected = 10, Counter[tuple[str, Decimal]]()
        self.seconds = min(self._length() for _ in range(2))

    def _length(self) -> float:
        start = time.monotonic()
        assert self._run() == "completed"
        self.expected = self._with_new_rows()
        return time.monotonic() - start

    def _run(self, dies_after: float | None = None) -> str:
        """Changes the input and runs in another process."""
        self.books.edit(SALES, f"a,EMEA,{self.amount}\n", f"a,EMEA,{self.amount + 10}\n")
        self.amount += 10
        job = Job(str(self.books.root), "2026-01", again=self.mode == "append", dies_after=dies_after)
        [outcome] = self.forks.run(job)
        return outcome

    def _with_new_rows(self) -> Rows:
        new = Counter([("a", Decimal(self.amount * 9) / 10), ("b", Decimal(18))])
        return self.expected + new if self.mode == "append" else new

    def rows(self) -> Rows:
        if self.name.startswith("delta"):
            rows = delta_rows(self.books.root / "warehouse" / "ledger", columns=["id", "net"])
        elif self.name.startswith("parquet"):
            rows = parquet_rows(self.books.root / "ledger", "id", "net")
        else:
            lines = [file.read_text().splitlines() for file in (self.books.root / "ledger").iterdir()]
            assert {header for header, *_ in lines} == {"id,tier,net,_period"}
            rows = [(cells[0], Decimal(cells[2])) for _, *rest in lines for cells in (line.split(",") for line in rest)]
        return Counter((str(id), Decimal(net)) for id, net in rows)

    def kill(self, share: float) -> str:
        """Kills a run after a share of its length and retries it; returns which rows were there in between."""
        before = self._runs()
        while self._run(dies_after=share * self.seconds) != "killed":
            self.expected, share, before = self._with_new_rows(), share / 2, before + 1
        new = self._with_new_rows()
        left = self.rows()
        assert left in (self.expected, new)
        if self._runs() == before:
            assert left == self.expected
            self.books.run(again=self.mode == "append")
            said = "old rows, whole; no run recorded yet; next run completed"
        elif not self._has_snapshot():
            assert left == self.expected
            with pytest.raises(RunError) as refused:
                self.books.retry()
            assert refused.value.problem.type == "RunNotRepeatable"
            self.books.run(again=self.mode == "append")
            said = "old rows, whole; RunNotRepeatable, killed before its snapshot; next run completed"
        else:
            self.books.retry()
            said = f"{'new' if left == new else 'old'} rows, whole; retry completed"
        assert self.rows() == new, "no row is lost, and none is there twice"
        self.expected = new
        folder = self.books.root
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".ledger")], "nothing is left over"
        return said

    def _runs(self) -> int:
        with self.books.store() as store:
            return len(store.runs())

    def _has_snapshot(self) -> bool:
        run = self.books.newest()
        assert run.status == "failed"
        with self.books.store() as store:
            try:
                store.snapshot(run.id)
            except RunError:
                return False
        return True


@pytest.fixture(scope="module")
def series(
    tmp_path_factory: pytest.TempPathFactory, forks: Forks, spark: SparkSession
) -> Iterator[Callable[[str], Series]]:
    made: dict[str, Series] = {}

    def get(name: str) -> Series:
        if name not in made:
            made[name] = Series(Books.at(tmp_path_factory.mktemp(name)), forks, name)
        return made[name]

    yield get


def tries(format: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(name, seed) for name in SERIES if name.startswith(format) for seed in SEEDS]


@pytest.mark.long
@pytest.mark.fault("SIGKILL at a random moment of a run to Delta", OUTCOME)
@pytest.mark.parametrize(("name", "seed"), tries(("delta",)))
def test_a_run_to_delta(
    series: Callable[[str], Series], record_property: Callable[[str, object], None], name: str, seed: int
) -> None:
    record_property("outcome", series(name).kill(random.Random(f"{name} {seed}").random()))


@pytest.mark.long
@pytest.mark.fault("SIGKILL at a random moment of a run to plain files", OUTCOME)
@pytest.mark.parametrize(("name", "seed"), tries(("parquet", "csv")))
def test_a_run_to_plain_files(
    series: Callable[[str], Series], record_property: Callable[[str, object], None], name: str, seed: int
) -> None:
    record_property("outcome", series(name).kill(random.Random(f"{name} {seed}").random()))
