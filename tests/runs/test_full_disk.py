"""Full disks and read-only folders: the run ends failed, the message says what is full, and old data is intact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.faults.disks import fill, read_only, small_disk
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, AtStep, Books, contents

from tallybook.errors import RunError, StoreError
from tallybook.runs import outputs
from tallybook.storage.write import write


def refused_write(books: Books, folder: str, seq: int, fault: Callable[[], object]) -> str:
    """The message of a run that meets the fault when its output begins; what was written before is as it was."""
    before = contents(books.root / folder)
    problem = books.fails(observers=[AtStep(seq, fault)])
    assert (problem.type, problem.seq) == ("WriteFailed", seq)
    after = contents(books.root / folder)
    assert {name: after.get(name) for name in before} == before
    assert {name for name in after if name.endswith(".parquet")} == {
        name for name in before if name.endswith(".parquet")
    }
    return problem.message


@pytest.mark.fault("the disk of a destination is full", "WriteFailed; old files as they were; retry completed")
@pytest.mark.parametrize(("folder", "seq"), [("warehouse", 30), pytest.param("reports", 50, marks=pytest.mark.long)])
def test_a_full_destination(active: Books, folder: str, seq: int) -> None:
    with small_disk(active.root / folder, 512) as disk:
        active.run()
        message = refused_write(active, folder, seq, lambda: fill(disk))
        assert str(disk) in message and "No space left on device" in message
        (disk / "ballast").unlink()
        active.retry()
        assert active.ledger() == JANUARY


@pytest.mark.fault("a destination turns read-only", "WriteFailed; old files as they were; retry completed")
@pytest.mark.parametrize(("folder", "seq"), [("warehouse", 30), pytest.param("reports", 50, marks=pytest.mark.long)])
def test_a_destination_that_turns_read_only(active: Books, folder: str, seq: int) -> None:
    active.run()
    with ExitStack() as stack:
        fault = read_only(active.root / folder)
        message = refused_write(active, folder, seq, lambda: stack.enter_context(fault))
        assert str(active.root / folder) in message
    active.retry()
    assert active.ledger() == JANUARY


@pytest.mark.fault(
    "the one disk that holds everything is full", "WriteFailed; recorded once there is room; next run completed"
)
def test_a_full_disk_that_holds_everything(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output fails first. The store cannot be told; the process tells it once there is room."""
    with small_disk(tmp_path / "books", 3000) as disk:
        books = Books.at(disk)
        books.open().activate("close")

        def fill_and_write(*args: Any, **options: Any) -> Any:
            fill(disk)
            return write(*args, **options)

        with monkeypatch.context() as patch, pytest.raises(RunError) as failed:
            patch.setattr(outputs, "write", fill_and_write)
            books.run()
        problem = failed.value.problem
        assert problem.type == "WriteFailed" and "warehouse/ledger could not be written" in problem.message
        assert problem.hint is not None and "the failure could not be recorded: the metadata store" in problem.hint
        with pytest.raises(StoreError, match=r"store\.sqlite3 cannot be written: the disk it is on is full"):
            books.run()
        (disk / "ballast").unlink()
        with books.store() as store:
            first = store.runs()[-1]
            assert {run.status for run in store.runs()} == {"failed"}
        assert first.id == failed.value.run_id and first.problem is not None
        assert first.problem["message"] == problem.message
        assert books.run().run.status == "completed"


@pytest.mark.fault("the disk of the store is full", "StoreError; nothing published; retry completed")
def test_a_full_disk_of_the_store(active: Books, tmp_path: Path) -> None:
    with small_disk(tmp_path / "meta", 600) as disk:
        active.edit("tallybook.yaml", "name: tiny", f"name: tiny\nstore: sqlite:///{disk}/m.db")
        active.open().activate("close")
        with pytest.raises(StoreError, match=r"m\.db cannot be written: the disk it is on is full"):
            active.run(observers=[AtStep(30, lambda: fill(disk))])
        (disk / "ballast").unlink()
        ended = active.newest()
        assert ended.status == "failed" and ended.problem is not None and "is full" in ended.problem["message"]
        assert active.open().retry(ended.id).run.status == "completed"
        assert active.ledger() == JANUARY


def test_an_interrupted_run_that_the_store_cannot_record(active: Books, tmp_path: Path) -> None:
    with small_disk(tmp_path / "meta", 600) as disk:
        active.edit("tallybook.yaml", "name: tiny", f"name: tiny\nstore: sqlite:///{disk}/m.db")
        active.open().activate("close")

        def interrupt() -> None:
            fill(disk)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            active.run(observers=[AtStep(10, interrupt)])
        (disk / "ballast").unlink()
        assert active.newest().status == "cancelled"


def test_a_read_only_workspace_can_be_looked_at(books: Books, tally: Tally) -> None:
    tally(books, "activate", "close")
    tally(books, "period", "2026-02", "--close")
    before = (books.root / ".tallybook" / "store.sqlite3").read_bytes()
    with read_only(books.root):
        assert tally(books, "runs").out == "no runs\n"
        assert "\nsales           1  active  from a file\n" in tally(books, "datasets").out
        assert tally(books, "datasets", "sales").code == 0
        assert tally(books, "validate").code == 0
        assert tally(books, "plan", "close", "--period", "2026-01").code == 0
        assert tally(books, "period").out == "2026-02  closed\n"
        assert "2026-02-28  closed\n" in tally(books, "period", "2026-02").out
        for command in (
            ["period", "2026-01", "--close"],
            ["apply"],
            ["activate", "close"],
            ["deactivate", "close"],
            ["run", "close", "--period", "2026-01"],
        ):
            said = tally(books, *command)
            assert said.code == 1 and "store.sqlite3 cannot be written" in said.err, command
    assert (books.root / ".tallybook" / "store.sqlite3").read_bytes() == before


def test_a_read_only_workspace_that_never_had_a_store(books: Books, tally: Tally) -> None:
    with read_only(books.root):
        assert tally(books, "runs").out == "no runs\n"
        assert tally(books, "plan", "close", "--period", "2026-01").code == 0
        said = tally(books, "apply")
        assert said.code == 1 and "store.sqlite3 cannot be created" in said.err
