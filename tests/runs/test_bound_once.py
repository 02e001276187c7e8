"""A project is bound once: by the check, to the versions that the run uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from tests.kit.workspaces import Books

from tallybook.project.bind import bind_project
from tallybook.runs.apply import apply
from tallybook.runs.prepare import prepare


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
