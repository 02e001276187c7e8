"""`tallybook clean`: removes what nobody needs, and nothing else, whatever names and links there are."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books, contents, delta_rows

from tallybook.errors import RunError
from tallybook.runs.clean import Cleaner, Leftover
from tallybook.runs.runner import RunResult

UNKNOWN = "0190a000-0000-7000-8000-000000000000"
"""The id of a run that no store knows."""


def cleaned(books: Books, before: datetime | None = None, *, dry_run: bool = False) -> dict[tuple[str, str], Leftover]:
    """What was removed, or would be, by kind and path in the workspace."""
    opened = books.open()
    with opened.store() as store:
        cleaner = Cleaner(store, books.root / ".tallybook", opened.sandbox, before or datetime.now(UTC))
        found = [leftover if dry_run else cleaner.remove(leftover) for leftover in cleaner.find()]
    return {(leftover.kind, str(leftover.path.relative_to(books.root))): leftover for leftover in found}


@pytest.fixture
def unregistered(active: Books) -> Books:
    """The ledger is not registered, so that only runs need its versions."""
    active.edit("close.yaml", "        register_as_dataset: ledger\n", "")
    (active.root / "report.yaml").unlink()
    active.open().activate("close")
    return active


LEDGER = ("versions", "warehouse/ledger")


@pytest.mark.long
def test_versions_that_nobody_needs(unregistered: Books) -> None:
    first, second, third = (unregistered.run() for _ in range(3))
    table = unregistered.root / "warehouse" / "ledger"
    (table / "notes.txt").write_text("mine")
    (table / f"{first.run.id}-30" / "link.parquet").symlink_to(table / "notes.txt")
    stranger = table / f"{UNKNOWN}-30"
    stranger.mkdir()
    (stranger / "part-00000.parquet").write_text("x")
    before = contents(table)
    between = second.run.finished_at
    assert between is not None
    planned = cleaned(unregistered, between, dry_run=True)[LEDGER]
    assert contents(table) == before, "a dry run changes nothing"
    assert {file.relative_to(table).parts[0] for file in planned.files} == {f"{first.run.id}-30"}
    assert planned.size == sum(len(before[str(file.relative_to(table))]) for file in planned.files) > 0
    assert cleaned(unregistered, between)[LEDGER].files == planned.files
    assert [delta_rows(table, version) for version in (1, 2)] == [JANUARY, JANUARY]
    left = contents(table)
    assert {name for name in before if name not in left} == {str(file.relative_to(table)) for file in planned.files}
    replayed = unregistered.open().replay(first.run.id).outputs[0]
    assert replayed.identical is None
    assert replayed.unknown is not None and "can no longer be read" in replayed.unknown
    assert unregistered.open().replay(third.run.id).outputs[0].identical is True
    assert cleaned(unregistered, between).keys() & {LEDGER} == set(), "nothing is left to remove"


def test_registered_versions_stay(active: Books) -> None:
    runs = [active.run() for _ in range(3)]
    files = contents(active.root / "warehouse")
    assert LEDGER not in cleaned(active)
    assert contents(active.root / "warehouse") == files
    assert [active.ledger(version) for version in range(len(runs))] == [JANUARY] * len(runs)


def test_versions_that_recent_runs_read_stay(unregistered: Books, spark: object) -> None:
    """Another project reads the table as an input; a retry or replay of its run needs that version."""
    unregistered.run()
    (unregistered.root / "copy.yaml").write_text(
        """\
dataset:
  id: ledger
  name: Ledger
  resolver_id: tables
  main_table:
    name: ledger
    columns: [{name: id, type: string}, {name: tier, type: string}]
---
resolver:
  id: tables
  rules: [{name: all, data_level: any, strategy: {type: table, datasource_id: warehouse, table: ledger}}]
---
project:
  id: copy
  name: Copy
  input_dataset_id: ledger
  operations:
    - {seq: 1, name: Out, type: output, arguments: {destination: {location: copies}, columns: [id]}}
"""
    )
    unregistered.open().activate("copy")
    read_at = datetime.now(UTC)
    copied = unregistered.run("copy")
    unregistered.run()
    unregistered.run()
    assert copied.run.created_at > read_at
    with unregistered.store() as store:
        older = Cleaner(store, unregistered.root, unregistered.root, datetime.now(UTC))
        assert older._kept(str(unregistered.root / "warehouse" / "ledger")) == set()
        recent = Cleaner(store, unregistered.root, unregistered.root, read_at)
        assert 0 in recent._kept(str(unregistered.root / "warehouse" / "ledger"))


def test_a_table_that_another_store_writes_is_left_alone(unregistered: Books, tmp_path: Path) -> None:
    unregistered.run()
    unregistered.run()
    for part in (unregistered.root / ".tallybook").glob("store.sqlite3*"):
        part.unlink()
    unregistered.open().activate("close")
    unregistered.run()
    before = contents(unregistered.root / "warehouse")
    left = cleaned(unregistered)[LEDGER]
    assert left.files == () and left.left is not None
    assert "which this metadata store does not know" in left.left
    assert contents(unregistered.root / "warehouse") == before


def test_a_replay_whose_input_is_gone_says_so(unregistered: Books) -> None:
    (unregistered.root / "sales.yaml").write_text(
        """\
dataset:
  id: sales
  name: Sales
  resolver_id: tables
  main_table:
    name: book
    columns: [{name: id, type: string}, {name: region, type: string}, {name: amount, type: decimal}]
---
resolver:
  id: tables
  rules: [{name: all, data_level: any, strategy: {type: table, datasource_id: warehouse, table: "{{table_name}}"}}]
---
project:
  id: book
  name: Book
  input_dataset_id: tiers
  operations:
    - seq: 1
      name: Amounts
      type: update
      arguments:
        assignments:
          - {column: id, expression: region}
          - {column: amount, expression: TO_DECIMAL("1.00")}
    - seq: 2
      name: Out
      type: output
      arguments: {destination: {datasource_id: warehouse, table: book}, columns: [id, region, amount]}
"""
    )
    unregistered.edit("close.yaml", "sales.region", "book.region")
    for project in ("book", "close"):
        unregistered.open().activate(project)
    unregistered.run("book")
    closed = unregistered.run()
    unregistered.run("book")
    assert ("versions", "warehouse/book") in cleaned(unregistered)
    with pytest.raises(RunError) as caught:
        unregistered.open().replay(closed.run.id)
    assert caught.value.problem.type == "DataNotFound"
    assert "can no longer be read" in caught.value.problem.message


def stage_of_a_killed_run(target: Path) -> Path:
    folder = target.with_name(f".{target.name}.tallybook-{UNKNOWN}-50-{'a' * 32}")
    folder.mkdir()
    (folder / "part-00000-x.parquet").write_text("half")
    return folder


def test_staging_folders(active: Books) -> None:
    active.run()
    target = active.root / "reports" / "2026-01"
    killed, mixed = stage_of_a_killed_run(target), stage_of_a_killed_run(target.with_name("2026-02"))
    mixed = mixed.rename(mixed.with_name(mixed.name.replace("2026-02", "2026-01").replace("a" * 32, "b" * 32)))
    (mixed / "mine.txt").write_text("mine")
    elsewhere = active.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "part-00000-x.parquet").write_text("mine")
    link = target.with_name(f".{target.name}.tallybook-{UNKNOWN}-50-{'c' * 32}")
    link.symlink_to(elsewhere)
    other = stage_of_a_killed_run(active.root / "reports" / "other")
    published = contents(target)
    with target.with_name(".2026-01.tallybook-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cleaned(active)["staging", "reports/2026-01"].left == "a run is writing there"
    assert killed.exists()
    removed = cleaned(active)["staging", "reports/2026-01"]
    assert removed.left is None and removed.size > 0
    assert not killed.exists()
    assert [file.name for file in mixed.iterdir()] == ["mine.txt"]
    assert (elsewhere / "part-00000-x.parquet").read_text() == "mine" and link.is_symlink()
    assert other.exists(), "no run wrote there"
    assert contents(target) == published


def test_the_sandbox(books: Books, spark: object, tmp_path: Path) -> None:
    first: RunResult = books.run()
    ended = datetime.now(UTC)
    february = books.run(period="2026-02")
    sandbox = books.open().sandbox
    kept = next(sandbox.glob("close/2026-02/50-*"))
    (kept / "mine.txt").write_text("mine")
    assert first.run.sandbox and february.run.sandbox
    removed = cleaned(books, ended)
    assert {path.rpartition("/")[0] for kind, path in removed if kind == "sandbox"} == {
        ".tallybook/sandbox/close/2026-01"
    }
    assert not (sandbox / "close" / "2026-01").exists()
    assert (sandbox / "close" / "2026-02").exists()
    moved = (sandbox / "close" / "2026-02").rename(tmp_path / "moved")
    (sandbox / "close" / "2026-02").symlink_to(moved)
    assert not [kind for kind, _ in cleaned(books) if kind in ("sandbox", "versions")], "a link leads elsewhere"
    (sandbox / "close" / "2026-02").unlink()
    moved.rename(sandbox / "close" / "2026-02")
    assert len([kind for kind, _ in cleaned(books) if kind == "sandbox"]) == 1
    assert (kept / "mine.txt").read_text() == "mine"
    assert len(list(kept.iterdir())) > 1, "a folder with a file of somebody else stays whole"


@pytest.fixture
def private(books: Books) -> Callable[..., Path]:
    def make(name: str, days: int = 100, text: str = "log") -> Path:
        file = books.root / ".tallybook" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        moment = datetime.now(UTC).timestamp() - days * 86400
        os.utime(file, (moment, moment))
        return file

    return make


def test_logs_and_scratch_folders_by_the_command(books: Books, tally: Tally, private: Callable[..., Path]) -> None:
    old = private("logs/spark-20250101T000000.000000Z-1999999.log")
    young = private("logs/spark-20260101T000000.000000Z-1999999.log", days=80)
    running = private(f"logs/spark-20250101T000000.000000Z-{os.getpid()}.log")
    mine = private("logs/my.log")
    scratch = private(f"scratch/{UNKNOWN}-{'0' * 32}/1/part-0.parquet")
    other = private("scratch/notes/part-0.parquet")
    linked = private("kept.log")
    (books.root / ".tallybook" / "logs" / "spark-20250102T000000.000000Z-1999999.log").symlink_to(linked)
    (books.root / ".tallybook" / "scratch" / f"{UNKNOWN}-{'1' * 32}").symlink_to(other.parent)
    dry = tally(books, "clean", "--dry-run")
    assert dry.out.splitlines()[-1] == "would be removed: 2 files, 6 bytes, all older than 90d"
    assert old.exists() and scratch.exists()
    done = tally(books, "clean", "--json").json
    assert [(place["kind"], place["files"], place["bytes"]) for place in done["places"]] == [
        ("logs", 1, 3),
        ("scratch", 1, 3),
    ]
    assert not old.exists() and not scratch.parents[1].exists()
    assert all(file.exists() for file in (young, running, mine, other, linked))
    books.edit("tallybook.yaml", "name: tiny\n", "name: tiny\nretention: {older_than: 10w}\n")
    assert tally(books, "clean", "--json").json["files"] == 1
    assert not young.exists()
    assert tally(books, "clean").out == "removed: 0 files, 0 bytes, all older than 10w\n"


@pytest.mark.parametrize("age", ["0d", "1h", "", "-1d", "90", "ninety"])
def test_an_age_that_is_none(books: Books, tally: Tally, age: str) -> None:
    said = tally(books, "clean", "--older-than", age)
    assert (said.code, "is not an age" in said.err) == (2, True)
