"""What people read of runs and datasets: nothing is left out in silence or said twice, and a retry is offered only
if it would be accepted."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.documents.kit import read_document
from tests.kit.workspaces import Books
from tests.scenarios.kit import rows, workspace

from tallybook.cli.main import main
from tallybook.cli.one_run import say_work, time_taken
from tallybook.documents.runs import RunDocument
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run
from tallybook.store.active import current_owner

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def books(tmp_path: Path) -> Books:
    books = Books.at(tmp_path / "books")
    books.open().apply()
    return books


def queued(books: Books, period: str, *, pid: int | None = None) -> Run:
    """A run of this process, or of one that is gone."""
    owner = current_owner()
    with books.store() as store:
        return store.create_run(
            "close",
            1,
            period,
            calendar_id="gregorian",
            as_of=date(2026, 1, 1),
            owner=owner if pid is None else owner.model_copy(update={"pid": pid}),
        )


def printed(books: Books, capsys: Printed, *args: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*args, "-w", str(books.root)]) == code
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_a_limit_says_how_many_runs_it_leaves_out(books: Books, capsys: Printed) -> None:
    for month in ("2026-01", "2026-02", "2026-03"):
        queued(books, month)
    assert printed(books, capsys, "runs", "--limit", "1").endswith("\n… 2 older runs; `--limit 3` lists all\n")
    assert printed(books, capsys, "runs", "--limit", "2").endswith("\n… 1 older run; `--limit 3` lists all\n")
    assert "older" not in printed(books, capsys, "runs", "--limit", "3")
    assert "older" not in printed(books, capsys, "runs", "--limit", "1", "--period", "2026-02")
    document = read_document(["runs"], 0, printed(books, capsys, "runs", "--limit", "1", "--json"))
    assert document["more"] == 2


def test_the_time_of_a_killed_run_ends_with_the_last_sign_of_its_process(books: Books, capsys: Printed) -> None:
    run = queued(books, "2026-01", pid=2**22 + 1)  # no process can have this pid
    with books.store() as store:
        killed = store.run(run.id)
    assert killed.status == "failed" and time_taken(killed) == "", "it never began"
    assert "\n  last sign of its process: 20" in printed(books, capsys, "runs", run.id)
    begun = killed.heartbeat_at - timedelta(seconds=90)
    noticed = killed.heartbeat_at + timedelta(days=2)
    killed = killed.model_copy(update={"started_at": begun, "finished_at": noticed})
    assert time_taken(killed) == "> 1 min 30 s"
    other = killed.model_copy(update={"problem": {"type": "InternalError", "message": "a bug"}})
    assert time_taken(other) == "48 h 1 min"
    assert time_taken(killed.model_copy(update={"started_at": killed.heartbeat_at})) == "", "no sign since it began"


def test_a_retry_is_not_offered_once_a_later_run_has_written(
    books: Books, capsys: Printed, spark: SparkSession
) -> None:
    data = books.root / "data" / "sales" / "2026-01.csv"
    data.rename(data.with_suffix(".away"))
    shown = printed(books, capsys, "run", "close", "--period", "2026-01", code=1)
    failed = books.newest()
    said_of_run = f"  `tallybook runs {failed.id}` shows how far it got\n"
    assert shown.index("DataNotFound") < shown.index("  hint: ") < shown.index(said_of_run)
    offer = f"`tallybook run --retry {failed.id}` continues it\n"
    assert offer in printed(books, capsys, "runs", failed.id)
    data.with_suffix(".away").rename(data)
    later = books.run().run
    shown = printed(books, capsys, "runs", failed.id)
    assert offer not in shown and f"superseded by run {later.id}; it cannot be retried\n" in shown
    assert "RunSuperseded" in printed(books, capsys, "run", "--retry", failed.id, code=1)


def test_many_runs_of_a_draft_say_once_where_they_wrote(books: Books, capsys: Printed, spark: SparkSession) -> None:
    shown = printed(books, capsys, "run", "close", "--period", "2026-01..2026-02")
    assert shown.count("outputs went to the sandbox") == shown.count("close 2026-01 completed") == 1
    assert "for 2026-01: completed" not in shown, "the line with its number says so"
    assert "\nproject close is a draft, so its outputs went to the sandbox\n" in shown
    with books.store() as store:
        batch = store.batch().id
    assert f"{batch} is a batch, not a run" in printed(books, capsys, "runs", batch, code=2)


def test_versions_of_a_dataset_show_the_same_columns_once(books: Books, capsys: Printed, spark: SparkSession) -> None:
    books.open().activate("close")
    books.run()
    books.run()
    shown = printed(books, capsys, "datasets", "ledger")
    assert shown.count("    tier string\n") == 1 and shown.endswith("\n  columns as in v1\n")
    assert " UTC, registered for 2026-01 by run " in shown


def test_names_of_scenarios_are_aligned(tmp_path: Path, capsys: Printed, spark: SparkSession) -> None:
    scenario = rows("id: A, amount: 10, paid: true", expect="  expect: {rows: [{id: A, net: 8}]}\n")
    books = Books(workspace(tmp_path, f"{scenario}---\n{scenario.replace('One', 'Two')}"))
    first, second = printed(books, capsys, "test").splitlines()[:2]
    assert (first.split()[-1], second.split()[-1]) == ("One", "Two") and first.index("One") == second.index("Two")
    assert len(first.split()[1]) < len(second.split()[1]), "the second has a longer number of a line"


def test_results_of_operations_stay_in_their_line_and_counts_are_right_aligned(
    books: Books, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = CheckResult(
        seq=1, name="Short", condition="TRUE", unit="group", tested=3, failed=1, on_failure="warn", examples=()
    )
    names = {1: "Short", 2: "A name that takes half of the line", 3: "Last"}
    document = RunDocument(
        run=queued(books, "2026-01"),
        operations=tuple(OperationResult(seq=seq, name=name, type="output") for seq, name in names.items()),
        outputs=tuple(
            OutputResult(seq=seq, location=f"csv {seq}", rows_written=rows_written, committed=True)
            for seq, rows_written in ((2, 1200), (3, 1))
        ),
        checks=(check,),
        warnings=(),
    )
    monkeypatch.setattr("tallybook.cli.one_run.room", lambda: 60)
    capsys.readouterr()
    say_work(document, books.root)
    assert capsys.readouterr().out.splitlines() == [
        "  1  output     Short                   1 of 3 groups failed",
        "  2  output     A name that takes half of the line  1,200 rows",
        "      → csv 2",
        "  3  output     Last                        1 row → csv 3",
    ]
