"""Workspaces with the same ids on one PostgreSQL store, as people use them from the command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy.engine import URL
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, AtStep, Books, delta_rows

from tallybook.errors import RunError
from tallybook.store.store import Store


@pytest.fixture
def shared(tmp_path: Path, new_database: Callable[[], URL]) -> Callable[[str, str], Books]:
    """Makes a workspace in a folder, with a name, on one store."""
    url = new_database()
    with Store(url) as store:
        store.upgrade()

    def make(folder: str, name: str) -> Books:
        books = Books.at(tmp_path / folder)
        books.edit("tallybook.yaml", "name: tiny\n", f"name: {name}\nstore: {url.render_as_string()}\n")
        return books

    return make


def test_each_workspace_has_its_own_state(shared: Callable[[str, str], Books], tally: Tally) -> None:
    ours, theirs = shared("ours", "ours"), shared("theirs", "theirs")
    theirs.edit("sales.yaml", "{name: region,", "{name: area,")
    theirs.edit("close.yaml", "region", "area")
    assert tally(ours, "activate", "close").code == 0
    assert tally(ours, "period", "2026-01", "--close").code == 0
    assert tally(theirs, "period").out == "no period of calendar gregorian was closed or locked\n"
    assert "no datasets are recorded" in tally(theirs, "datasets").out
    assert "project close v1: draft" in tally(theirs, "apply").out
    assert tally(ours, "apply").out.startswith("nothing changed\nproject close v1: active")
    assert tally(theirs, "period", "2026-01").out.endswith("open\n")


def test_a_clone_is_the_same_workspace_and_another_of_that_name_is_refused(
    shared: Callable[[str, str], Books],
    tally: Tally,
    tmp_path: Path,
) -> None:
    first = shared("first", "close")
    assert tally(first, "activate", "close").code == 0
    clone = Books(Path(shutil.copytree(first.root, tmp_path / "clone", ignore=shutil.ignore_patterns(".tallybook"))))
    shutil.rmtree(first.root)
    assert tally(clone, "apply").out.startswith("nothing changed\nproject close v1: active")

    other = shared("other", "close")
    for file in ("sales", "tiers", "close", "report"):
        other.edit(f"{file}.yaml", f"name: {file.capitalize()}\n", "name: Of another workspace\n")
    for command in (["runs"], ["apply"], ["period", "2026-01", "--close"], ["plan", "close", "--period", "2026-01"]):
        said = tally(other, *command)
        assert said.code == 1 and f"already has a workspace 'close', in the folder {clone.root}" in said.err, command
    shutil.rmtree(clone.root)
    said = tally(other, "apply")
    assert said.code == 1 and "it has recorded no project or dataset of this folder" in said.err
    other.edit("tallybook.yaml", "name: close", "name: other")
    assert "project close v1: draft" in tally(other, "apply").out


def test_a_workspace_is_renamed(
    shared: Callable[[str, str], Books],
    tally: Tally,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    books = shared("books", "close")
    tally(books, "activate", "close")
    books.edit("tallybook.yaml", "name: close", "name: month end")
    said = tally(books, "period", "2026-01", "--close")
    assert said.code == 1 and "`tallybook store rename close`" in said.err
    assert tally(books, "store", "rename", "clos").code == 1
    assert tally(books, "store", "rename", "close").out == "workspace 'close' of the store is now called 'month end'\n"
    assert tally(books, "apply").out.startswith("nothing changed\nproject close v1: active")
    books.edit("tallybook.yaml", "name: month end", "name: budget")
    said = tally(books, "store", "join")
    assert said.code == 1 and "has no workspace 'budget'; it has 'month end'" in said.err
    assert tally(books, "store", "join", "--new", "--json").json == {"workspace": "budget"}
    assert tally(books, "runs").out == "no runs\n"
    assert "project close v1: draft" in tally(books, "apply").out
    for name, status in (("month end", "active"), ("budget", "draft")):
        monkeypatch.setenv("TALLYBOOK_NAME", name)
        said = tally(books, "apply")
        assert said.out.startswith(f"nothing changed\nproject close v1: {status}"), "one folder, two workspaces"


def test_settings_with_a_mistake_do_not_lead_to_another_workspace(
    shared: Callable[[str, str], Books],
    tally: Tally,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    books = shared("books", "close")
    store = (books.root / "tallybook.yaml").read_text().split("store: ")[1].splitlines()[0]
    (books.root / "tallybook.yaml").write_text("name: [\n")
    monkeypatch.setenv("TALLYBOOK_STORE", store)
    said = tally(books, "runs")
    assert said.code == 1 and said.err.startswith("tallybook.yaml:")


def test_a_file_that_two_workspaces_share_belongs_to_neither(tmp_path: Path, tally: Tally) -> None:
    """Each path begins with the folder of its workspace, and leads out of it."""
    (tmp_path / "shared").mkdir()
    for name, store in (("ours", "sqlite:///../shared/store.db"), ("theirs", "sqlite:///link/store.db")):
        books = Books.at(tmp_path / name)
        (books.root / "link").symlink_to(tmp_path / "shared")
        books.edit("tallybook.yaml", "name: tiny\n", f"name: {name}\nstore: {store}\n")
        assert tally(books, "period", "2026-01").out.endswith("open\n")
        assert "2026-01-31  closed\n" in tally(books, "period", "2026-01", "--close").out
    books.edit("tallybook.yaml", "name: theirs\n", "name: ours\n")
    said = tally(books, "runs")
    assert said.code == 1 and f"already has a workspace 'ours', in the folder {tmp_path / 'ours'}" in said.err


@pytest.mark.long
def test_workspaces_that_write_to_one_place_notice_each_other(
    shared: Callable[[str, str], Books],
    tally: Tally,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    ours, theirs = shared("ours", "ours"), shared("theirs", "theirs")
    for books in (ours, theirs):
        books.edit("places.yaml", "path_prefix: warehouse", f"path_prefix: {tmp_path}/warehouse")
        books.edit("close.yaml", "reports/{{period}}", f"{tmp_path}/reports/{{{{period}}}}")
    theirs.edit("close.yaml", "amount * 0.9", "amount * 0.5")
    for books in (ours, theirs):
        books.open().activate("close")

    with pytest.raises(RunError) as refused:
        ours.run(observers=[AtStep(30, theirs.run)])
    assert refused.value.problem.type == "RunSuperseded" and "another workspace" in str(refused.value.problem.hint)
    ledger = tmp_path / "warehouse" / "ledger"
    assert [row[2] for row in delta_rows(ledger)] == [Decimal("5.00"), Decimal("10.00")]

    with ours.store() as store:
        [run] = store.runs()
    assert ours.open().retry(run.id).run.status == "completed" and delta_rows(ledger) == JANUARY
    with theirs.store() as store:
        [other] = store.runs()
    said = tally(theirs, "replay", other.id)
    assert f"run {run.id} of workspace 'ours' has written there since" in said.out and "): identical" in said.out
    said = tally(ours, "replay", other.id)
    assert said.code == 1 and f"no run has the id {other.id}" in said.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ('""', "'name' must not be empty"),
        ('"  "', "no spaces at its ends"),
        ('"close\\e[31m"', "no control characters"),
        ('"close\\nbooks"', "no line breaks"),
        ('"\\u202eesolc"', "no control characters"),
        ("x" * 101, "'name' must have at most 100 characters"),
        ("[close]", "'name' must be text"),
    ],
    ids=["empty", "blank", "escape", "line-break", "reversed", "long", "list"],
)
def test_names_that_are_not_possible(books: Books, tally: Tally, name: str, said: str) -> None:
    books.edit("tallybook.yaml", "name: tiny", f"name: {name}")
    for command in ("validate", "runs", "apply"):
        shown = tally(books, command)
        assert shown.code == 1 and said in shown.err + shown.out and "\x1b" not in shown.err + shown.out
