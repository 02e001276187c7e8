"""The difference between two versions in words, and what of it breaks a project."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybook.project.changes import breaking_changes, describe_changes
from tallybook.project.difference import moves


def operation(seq: int, name: str, **more: Any) -> dict[str, Any]:
    return {"seq": seq, "name": name, "type": "update", "arguments": {"assignments": []}} | more


def project(*operations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "p", "name": "P", "input_dataset_id": "d", "operations": list(operations)} | changes


A, B, C = operation(1, "A"), operation(2, "B"), operation(3, "C")


def assigning(text: str) -> dict[str, Any]:
    return operation(1, "A", arguments={"assignments": [{"column": "x", "expression": text}]})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (project(A), project(A), []),
        (project(A, B), project(B, A), []),
        (project(A, B, C), project(A, C | {"seq": 2}, B | {"seq": 3}), ["operation 3 moved before 2"]),
        (
            project(A, B, C),
            project(B | {"seq": 1}, C | {"seq": 2}, A | {"seq": 3}),
            ["operation 1 moved after 3"],
        ),
        (project(A, B), project(A), ["operation 2 'B' removed"]),
        (project(A), project(A, B), ["operation 2 'B' added"]),
        (
            project(A, C | {"seq": 2}),
            project(A, B, C),
            ["operation 2 'B' added", "operation 2 'C' is now number 3"],
        ),
        (project(A), project(A | {"seq": 10}), ["operation 1 'A' is now number 10"]),
        (project(A), project(A | {"name": "Z"}), ["operation 1: name: A → Z"]),
        (project(A | {"id": "op"}), project(B | {"id": "op", "seq": 1}), ["operation 1: name: A → B"]),
        (
            project(assigning("1")),
            project(assigning("2")),
            ["operation 1: arguments.assignments 'x'.expression: 1 → 2"],
        ),
        (project(A), project(A | {"selector": "x > 1"}), ["operation 1: selector added: x > 1"]),
        (project(A | {"selector": "x > 1"}), project(A), ["operation 1: selector removed (was x > 1)"]),
        (project(A), project(A, name="Q"), ["name: P → Q"]),
        (project(A, selectors={"s": "x"}), project(A, selectors={"s": "y"}), ["selectors.s: x → y"]),
    ],
)
def test_projects(old: dict[str, Any], new: dict[str, Any], words: list[str]) -> None:
    assert describe_changes("project", old, new) == words


def column(name: str, type: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type} | more


def dataset(*columns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "d", "name": "D", "main_table": {"name": "t", "columns": list(columns)}} | changes


def lookup(*columns: dict[str, Any]) -> dict[str, Any]:
    condition = {"source_column": "a", "target_column": "a"}
    return {"alias": "l", "target": {"name": "u", "columns": list(columns)}, "join_conditions": [condition]}


TIER, AMOUNT = column("tier"), column("amount", "decimal")
REFERENCE = {"alias": "l", "target": {"dataset_id": "other"}, "join_conditions": []}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (dataset(TIER), dataset(column("tier", "integer")), ["column tier: string → integer"]),
        (dataset(TIER, AMOUNT), dataset(TIER), ["column amount: removed"]),
        (dataset(TIER), dataset(TIER, AMOUNT), ["column amount: added, decimal(18,6)"]),
        (dataset(TIER), dataset(column("level")), ["column tier: renamed to level"]),
        (dataset(TIER), dataset(column("level", "date")), ["column tier: removed", "column level: added, date"]),
        (
            dataset(TIER, AMOUNT),
            dataset(AMOUNT, column("level", source="tier")),
            ["column tier: renamed to level"],
        ),
        (dataset(TIER, AMOUNT), dataset(AMOUNT, TIER), ["column amount: moved before tier"]),
        (dataset(AMOUNT), dataset(column("amount", "decimal(18,6)")), []),
        (dataset(TIER), dataset(column("tier", nullable=False)), ["column tier: nullable added: false"]),
        (dataset(TIER), dataset(TIER, status="disabled"), ["status added: disabled"]),
        (dataset(TIER), dataset(TIER, version=7), []),
        (dataset(TIER), dataset(TIER, lookups=[lookup(TIER)]), ["lookup l added"]),
        (dataset(TIER, lookups=[lookup(TIER)]), dataset(TIER), ["lookup l removed"]),
        (
            dataset(TIER, lookups=[lookup(TIER)]),
            dataset(TIER, lookups=[lookup(column("tier", "date"))]),
            ["column l.tier: string → date"],
        ),
        (
            dataset(TIER, lookups=[lookup(TIER)]),
            dataset(TIER, lookups=[lookup(TIER) | {"join_conditions": []}]),
            ['lookup l: join_conditions: [{"source_column": "a", "target_column": "a"}] → []'],
        ),
        (
            dataset(TIER),
            dataset(TIER) | {"main_table": {"name": "t", "columns": [TIER], "temporal_mode": "period"}},
            ["table temporal_mode added: period"],
        ),
    ],
)
def test_datasets(old: dict[str, Any], new: dict[str, Any], words: list[str]) -> None:
    assert describe_changes("dataset", old, new) == words


def test_rules_of_a_resolver_are_told_by_name() -> None:
    first, second = {"name": "first", "when": "a"}, {"name": "second", "when": "b"}
    old = {"id": "r", "rules": [first, second]}
    new = {"id": "r", "rules": [second | {"when": "c"}, first, {"name": "third"}]}
    assert describe_changes("resolver", old, new) == [
        "rules 'third' added",
        "rules 'second' moved before first",
        "rules 'second'.when: b → c",
    ]


def test_a_first_version_is_new() -> None:
    assert describe_changes("calendar", None, {"id": "c"}) == ["calendar is new"]


@given(st.permutations(range(6)))
def test_moving_what_is_said_to_move_gives_the_new_order(after: list[int]) -> None:
    before = list(range(6))
    said = list(moves(before, after))
    moved = [item for item, _ in said]
    assert [item for item in before if item not in moved] == [item for item in after if item not in moved]
    order = [item for item in before if item not in moved]
    for item, where in said:
        side, _, other = where.partition(" ")
        order.insert(order.index(int(other)) + (side == "after"), item)
    assert order == after


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (dataset(column("tier", "integer"), AMOUNT), "column tier: string → integer, used by operations 2, 5"),
        (dataset(AMOUNT), "column tier: removed, used by operations 2, 5"),
        (dataset(column("level"), AMOUNT), "column tier: renamed to level, used by operations 2, 5"),
        (dataset(TIER, column("amount", "integer")), None),
        (dataset(TIER), None),
        (dataset(TIER, AMOUNT, column("new")), None),
        (dataset(AMOUNT, TIER), None),
        (dataset(column("tier", nullable=False), AMOUNT), None),
    ],
)
def test_only_used_columns_break(new: dict[str, Any], expected: str | None) -> None:
    broken = breaking_changes(dataset(TIER, AMOUNT), new, {5: {"tier"}, 2: {"tier", "other"}, 3: {"other"}})
    assert [str(change) for change in broken] == ([expected] if expected else [])


def test_columns_of_lookups_break_under_their_alias() -> None:
    old = dataset(TIER, lookups=[lookup(TIER, AMOUNT)])
    used = {4: {"l.tier"}}
    assert [str(each) for each in breaking_changes(old, dataset(TIER), used)] == [
        "column l.tier: removed, used by operation 4"
    ]
    assert breaking_changes(old, dataset(TIER, lookups=[lookup(TIER)]), used) == ()
    assert breaking_changes(old, dataset(TIER, lookups=[REFERENCE]), used) == ()
