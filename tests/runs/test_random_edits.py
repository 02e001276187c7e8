"""Random edits, activations and settled conflicts: versions never change, and what is active can run."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.workspaces import Books

from tallybook.errors import TallybookError
from tallybook.model.state import Kind
from tallybook.runs.prepare import prepare
from tallybook.workspace import Workspace

TOGGLES = (
    ("sales.yaml", "{name: region,", "{name: area,"),
    ("sales.yaml", '{name: amount, type: "decimal(10,2)"}', "{name: amount, type: string}"),
    ("sales.yaml", "name: Sales", "name: All sales"),
    ("sales.yaml", "- {name: id,", "- {name: note, type: string}\n      - {name: id,"),
    ("tiers.yaml", "{name: tier, type: string}", "{name: tier, type: integer}"),
    ("tiers.yaml", "{name: region,", "{name: area,"),
    ("close.yaml", "dataset_id: tiers,", "dataset_id: tiers, dataset_version: 1,"),
    ("close.yaml", "sales.region = t.region", "sales.id = t.region"),
    ("close.yaml", "amount = 0", "id IS NULL"),
    ("close.yaml", "name: Close", "name: Month end"),
)
ACTIONS = st.sampled_from([*range(len(TOGGLES)), "activate", "deactivate", "stay"])


def act(books: Books, action: int | str) -> None:
    """A step a user may try; a refusal is an answer, too."""
    workspace = books.open()
    with suppress(TallybookError):
        if isinstance(action, int):
            file, one, other = TOGGLES[action]
            books.edit(file, *((other, one) if other in (books.root / file).read_text() else (one, other)))
        elif action == "stay":
            workspace.activate("close", stay_pinned=True)
        else:
            getattr(workspace, action)("close")


def versions(books: Books) -> dict[tuple[str, str, int], str]:
    with books.store() as store:
        return {
            (kind, newest.id, each.version): each.content_hash
            for kind in get_args(Kind)
            for newest in store.all_latest(kind)
            for each in store.versions(kind, newest.id)
        }


def check_runnable(workspace: Workspace) -> None:
    """The active project fits the versions it would run with; one in conflict says why."""
    with workspace.store() as store:
        state = store.project_state("close")
        assert state is not None
        assert bool(state.conflicts) == (state.status == "conflict")
        assert (state.input_dataset_version is not None) == (state.status in ("active", "conflict"))
        if state.status == "active":
            prepare(workspace.definitions, store.recorded(), "close").fitting()


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.lists(ACTIONS, min_size=4, max_size=8))
def test_random_edits(actions: list[int | str]) -> None:
    check_edits(["activate", *actions])


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, min_size=4, max_size=14))
def test_many_random_edits(actions: list[int | str]) -> None:
    check_edits(["activate", *actions])


def check_edits(actions: list[int | str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        books = Books.at(Path(folder))
        before: dict[tuple[str, str, int], str] = {}
        for action in actions:
            act(books, action)
            workspace = books.open()
            workspace.apply()
            assert workspace.apply().versions == (), "what is recorded is not recorded again"
            now = versions(books)
            assert before.items() <= now.items(), "a version never changes"
            before = now
            check_runnable(workspace)
