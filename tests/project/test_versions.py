"""What recording the files changes: decided from what is recorded and the files, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from types import MappingProxyType

import pytest

from tallybook.model.state import Definition, ProjectState
from tallybook.project.check import check
from tallybook.project.load import Definitions, load_definitions
from tallybook.project.recorded import Changes, Recorded, content_hash
from tallybook.project.versions import changes

FILES = {
    "tallybook.yaml": "name: tiny\n",
    "sales.yaml": """\
dataset:
  id: sales
  name: Sales
  main_table: {name: sales, columns: [{name: region, type: string}, {name: amount, type: integer}]}
""",
    "close.yaml": """\
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - {seq: 10, name: Drop, type: delete, selector: amount = 0}
""",
}
Write = Callable[..., Definitions]
NOW = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the files, with some texts replaced, and reads them."""

    def written(*replaced: tuple[str, str]) -> Definitions:
        for name, text in FILES.items():
            written_text = reduce(lambda so_far, pair: so_far.replace(*pair), replaced, text)
            (tmp_path / name).write_text(written_text)
        return load_definitions(tmp_path)

    return written


def saved(decided: Changes) -> Recorded:
    """What a store knows once changes are saved."""
    new = [
        Definition(
            kind=each.kind,
            id=each.id,
            version=each.version,
            content_hash=content_hash(each.body),
            body=each.body,
            status=each.body.get("status"),
            created_at=NOW,
        )
        for each in decided.versions
    ]
    before = decided.recorded
    return replace(
        before,
        declared=MappingProxyType({**before.declared, **{(each.kind, each.id): each for each in new}}),
        latest=MappingProxyType({**before.latest, **{(each.kind, each.id): each.version for each in new}}),
        datasets=(*before.datasets, *(each for each in new if each.kind == "dataset")),
        states=MappingProxyType({state.project_id: state for state in decided.states}),
    )


def active(write: Write) -> Recorded:
    """Everything recorded, and the project active on version 1 of its input."""
    recorded = saved(changes(Recorded(), write()))
    pins = {"status": "active", "input_dataset_version": 1, "reviewed_dataset_version": 1}
    state = recorded.states["close"].model_copy(update=pins)
    return replace(recorded, states=MappingProxyType({"close": state}))


def brief(decided: Changes) -> list[tuple[str, str, int, bool]]:
    return [(each.kind, each.id, each.version, each.is_new) for each in decided.versions]


def state(decided: Changes) -> ProjectState:
    found = decided.state("close")
    assert found is not None
    return found


def test_everything_is_new_once(write: Write) -> None:
    first = changes(Recorded(), write())
    assert brief(first) == [("dataset", "sales", 1, True), ("project", "close", 1, True)]
    assert (state(first).status, state(first).version) == ("draft", 1)
    again = changes(saved(first), write())
    assert (again.versions, again.states) == ((), first.states)


def test_the_same_is_decided_again_and_nothing_is_touched(write: Write) -> None:
    recorded, files = active(write), write(("amount", "total"))
    before = repr(recorded)
    first = changes(recorded, files)
    assert changes(recorded, files) == first
    assert repr(recorded) == before


def test_words_and_numbers_of_a_change(write: Write) -> None:
    recorded = replace(active(write), latest=MappingProxyType({("dataset", "sales"): 4, ("project", "close"): 1}))
    [new] = changes(recorded, write(("name: region", "name: area"))).versions
    assert (new.version, new.words) == (5, ("column region: renamed to area",)), "versions 2 to 4 are registered"


@pytest.mark.parametrize(
    ("old", "new", "status", "pin"),
    [("name: Close", "name: Month end", "active", 1), ("amount = 0", "amount < 0", "draft", None)],
)
def test_only_a_change_of_structure_makes_a_draft(write: Write, old: str, new: str, status: str, pin: int) -> None:
    after = state(changes(active(write), write((old, new))))
    assert (after.status, after.version, after.input_dataset_version) == (status, 2, pin)


def test_a_column_in_use_that_goes_is_a_conflict_and_another_is_none(write: Write) -> None:
    harmless = changes(active(write), write(("name: region", "name: area")))
    assert (state(harmless).status, state(harmless).conflicts) == ("active", ())
    broken = state(changes(active(write), write(("{name: amount, type: integer}", "{name: total, type: string}"))))
    assert broken.status == "conflict"
    assert [str(conflict) for conflict in broken.conflicts] == [
        "dataset sales v1 → v2, column amount: removed, used by operation 10"
    ]


def test_a_disabled_input_is_no_conflict(write: Write) -> None:
    off = ("name: Sales", "name: Sales\n  status: disabled")
    recorded = saved(changes(active(write), write(off)))
    assert state(changes(recorded, write(off, ("name: amount", "name: total")))).status == "active"


def test_what_a_check_finds_cannot_be_changed(write: Write) -> None:
    found = check(write())
    for held in (found, found.definitions, found.datasets, found.bound["close"]):
        assert is_dataclass(held)
        for field in fields(held):
            value = getattr(held, field.name)
            assert not isinstance(value, list | dict | set), f"{type(held).__name__}.{field.name} can be changed"
            with pytest.raises(FrozenInstanceError):
                setattr(held, field.name, value)
