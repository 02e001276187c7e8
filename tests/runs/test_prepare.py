"""Files become versions, described in words, and a project is bound once, to the versions that the run uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from tests.kit.workspaces import Books
from tests.rules.kit import rule

from tallybook.project.bind import bind_project
from tallybook.runs.prepare import apply, prepare
from tallybook.workspace import Workspace


def words(workspace: Workspace, **options: bool) -> dict[str, tuple[str, ...]]:
    return {f"{each.kind} {each.id} v{each.version}": each.words for each in workspace.apply(**options).versions}


def test_everything_is_recorded_once(books: Books) -> None:
    assert set(words(books.open())) == {
        "datasource files v1",
        "datasource warehouse v1",
        "resolver by-month v1",
        "resolver reference v1",
        "dataset sales v1",
        "dataset tiers v1",
        "project close v1",
        "project report v1",
    }
    for file in books.root.glob("*.yaml"):
        os.utime(file, (0, 0))
        file.write_text("# the same, said with a comment\n" + file.read_text())
    assert words(books.open()) == {}


def test_a_dry_run_says_it_and_records_nothing(books: Books) -> None:
    assert len(words(books.open(), dry_run=True)) == 8
    assert not (books.root / ".tallybook").exists(), "looking makes no store"
    books.open().apply()
    books.edit("tiers.yaml", "{name: tier, type: string}", "{name: tier, type: integer}")
    books.edit("close.yaml", "seq: 20", "seq: 45")
    expected = {
        "dataset tiers v2": ("column tier: string → integer",),
        "project close v2": ("operation 20 moved before 50", "operation 20 'Drop' is now number 45"),
    }
    assert words(books.open(), dry_run=True)["dataset tiers v2"] == expected["dataset tiers v2"]
    changed = words(books.open(), dry_run=True)
    assert changed["project close v2"][0] == "operation 20 moved before 50"
    assert words(books.open(), dry_run=True) == changed, "a dry run changes nothing"
    assert words(books.open()) == changed
    assert words(books.open()) == {}


@rule("BR-001", "BR-002", "BR-003")
def test_reordering_an_active_project_makes_a_new_version_and_keeps_the_old(books: Books) -> None:
    books.open().activate("close")
    books.edit("close.yaml", "seq: 20", "seq: 45")
    state = {each.project_id: each for each in books.open().apply().states}["close"]
    assert (state.version, state.status) == (2, "draft")
    with books.store() as store:
        first, second = store.versions("project", "close")
    assert [each["seq"] for each in first.body["operations"]] == [10, 20, 30, 40, 50]
    assert sorted(each["seq"] for each in second.body["operations"]) == [10, 30, 40, 45, 50]


def test_an_unfinished_project_is_recorded_but_what_it_stands_on_must_be_sound(books: Books) -> None:
    books.edit("close.yaml", "amount = 0", "amuont = 0")
    assert "project close v1" in words(books.open())
    books.edit("sales.yaml", "type: string", "type: strnig")
    books.edit("sales.yaml", "name: Sales", "name: All sales")
    applied = books.open().apply()
    assert not applied.versions
    assert {problem.place.file for problem in applied.left_out if problem.place} == {"sales.yaml"}


@contextmanager
def counting() -> Iterator[list[str]]:
    """The ids of the projects that are bound, in order."""
    bound: list[str] = []

    def watch(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code is bind_project.__code__:
            bound.append(frame.f_locals["head"].id)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield bound
    finally:
        sys.setprofile(before)


def _alone(books: Books) -> Books:
    """Without the project that reads what the close registers."""
    (books.root / "report.yaml").unlink()
    return books


@pytest.mark.parametrize("activated", [False, True])
def test_a_run_binds_its_project_once(books: Books, spark: object, activated: bool) -> None:
    workspace = _alone(books).open()
    if activated:
        with counting() as bound:
            workspace.activate("close")
        assert bound == ["close"]
    with counting() as bound:
        result = books.open().run("close", "2026-01")
    assert result.run.status == "completed"
    assert bound == ["close"]


def test_a_plan_binds_each_project_once(books: Books) -> None:
    with counting() as bound:
        books.open().plan("close", "2026-01")
    assert sorted(bound) == ["close", "report"]
    books.open().activate("close")
    books.edit("sales.yaml", "name: Sales", "name: All sales")
    with counting() as bound:
        books.open().plan("close", "2026-01")
    assert sorted(bound) == ["close", "report"]


def test_a_project_is_bound_again_if_others_record_something_meanwhile(books: Books) -> None:
    books.open().apply()
    workspace = books.open()
    with books.store() as store:
        prepared = prepare(workspace.definitions, store.recorded(), "close")
        books.edit("sales.yaml", "name: Sales", "name: All sales")
        books.open().apply()
        with counting() as bound:
            after = prepared.after(apply(store, prepared.checked))
    assert bound == ["close"]
    versions = [each.bound.input.dataset.version for each in (prepared, after) if each.bound.input is not None]
    assert versions == [1, 3], "the file of the first is recorded over that of the other"
