"""Describes the changes between two versions of a definition, and finds those that break projects.

Works on plain definition bodies, so it can compare what a file says with any version the metadata store kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

from tallybook.model.columns import ColumnType
from tallybook.model.state import ColumnChange, Json, Kind
from tallybook.project.difference import key_changes, moves


def describe_changes(kind: Kind, old: Json | None, new: Json) -> list[str]:
    """Returns one sentence for each change; empty if nothing changed."""
    if old is None:
        return [f"{kind} is new"]
    if kind == "project":
        return list(_project_changes(old, new))
    if kind == "dataset":
        return list(_dataset_changes(old, new))
    return list(key_changes(old, new))


def breaking_changes(old: Json, new: Json, used: Mapping[int, Collection[str]]) -> tuple[ColumnChange, ...]:
    """The columns of a dataset that are removed, renamed or retyped although operations use them.

    `used` says which columns each operation (by seq) uses: bare names of the main table, `alias.column` for lookups.
    """
    broken = breaking_columns(old, new)
    users = {name: tuple(sorted(seq for seq, columns in used.items() if name in columns)) for name in broken}
    return tuple(
        ColumnChange(column=name, change=change, operations=users[name])
        for name, change in broken.items()
        if users[name]
    )


def breaking_columns(old: Json, new: Json) -> dict[str, str]:
    """The columns of a dataset that are removed, renamed or retyped, each with the change in words."""
    return {name: change for name, change, breaks in _all_column_changes(old, new) if breaks}


def _project_changes(old: Json, new: Json) -> Iterator[str]:
    yield from key_changes(old, new, skip=("operations",))
    before, after = _in_order(old), _in_order(new)
    pairs = _pair_operations(before, after)
    kept_before = [seq for seq in before if seq in pairs]
    kept_after = sorted(kept_before, key=lambda seq: pairs[seq])
    yield from (f"operation {_called(before[seq])} removed" for seq in before if seq not in pairs)
    yield from (f"operation {_called(after[seq])} added" for seq in after if seq not in pairs.values())
    yield from (f"operation {seq} moved {where}" for seq, where in moves(kept_before, kept_after))
    for expected, seq in zip(kept_before, kept_after, strict=True):
        if pairs[seq] != expected:
            yield f"operation {_called(before[seq])} is now number {pairs[seq]}"
    for seq in kept_before:
        for change in key_changes(before[seq], after[pairs[seq]], skip=("seq",)):
            yield f"operation {seq}: {change}"


def _in_order(project: Json) -> dict[int, Json]:
    return {
        operation["seq"]: operation
        for operation in sorted(project["operations"], key=lambda operation: operation["seq"])
    }


def _called(operation: Json) -> str:
    return f"{operation['seq']} '{operation['name']}'"


def _pair_operations(before: Mapping[int, Json], after: Mapping[int, Json]) -> dict[int, int]:
    """Pairs old with new operations, by seq: tries the strongest similarity first, and uses each operation once."""
    likenesses: tuple[Callable[[Json], Hashable], ...] = (
        lambda operation: operation.get("id"),
        lambda operation: json.dumps(_body_of(operation), sort_keys=True, default=str),
        lambda operation: (operation["type"], operation["name"]),
        lambda operation: (operation["type"], operation["seq"]),
    )
    pairs: dict[int, int] = {}
    for likeness in likenesses:
        waiting: dict[Hashable, list[int]] = {}
        for seq, operation in after.items():
            if seq not in pairs.values():
                waiting.setdefault(likeness(operation), []).append(seq)
        for seq, operation in before.items():
            key = likeness(operation)
            if key is not None and seq not in pairs and waiting.get(key):
                pairs[seq] = waiting[key].pop(0)
    return pairs


def _body_of(operation: Json) -> Json:
    return {key: value for key, value in operation.items() if key not in ("seq", "id")}


def _dataset_changes(old: Json, new: Json) -> Iterator[str]:
    yield from key_changes(old, new, skip=("main_table", "lookups"))
    yield from (f"table {change}" for change in key_changes(old["main_table"], new["main_table"], skip=("columns",)))
    before, after = _lookups(old), _lookups(new)
    yield from (f"lookup {alias} removed" for alias in before if alias not in after)
    yield from (f"lookup {alias} added" for alias in after if alias not in before)
    for alias in before:
        if alias in after:
            yield from _lookup_changes(f"lookup {alias}", before[alias], after[alias])
    for name, change, _breaks in _all_column_changes(old, new):
        if name.partition(".")[0] in after or "." not in name:
            yield f"column {name}: {change}"


def _lookup_changes(name: str, old: Json, new: Json) -> Iterator[str]:
    without_columns = [
        lookup | {"target": {key: value for key, value in lookup["target"].items() if key != "columns"}}
        for lookup in (old, new)
    ]
    yield from (f"{name}: {change}" for change in key_changes(*without_columns))


def _lookups(dataset: Json) -> dict[str, Json]:
    return {lookup["alias"]: lookup for lookup in dataset.get("lookups") or ()}


_ColumnChange = tuple[str, str, bool]
"""The column, the change in words, and True if it breaks operations that use the column."""


def _all_column_changes(old: Json, new: Json) -> Iterator[_ColumnChange]:
    """Yields changes of the main table by column name, then of the lookups' own tables as `alias.column`.

    A lookup of another dataset changes with that dataset.
    """
    yield from _column_changes(old["main_table"]["columns"], new["main_table"]["columns"])
    after = _lookups(new)
    for alias, lookup in _lookups(old).items():
        target = after[alias]["target"] if alias in after else {"columns": ()}
        if "columns" in lookup["target"] and "columns" in target:
            for name, change, breaks in _column_changes(lookup["target"]["columns"], target["columns"]):
                yield f"{alias}.{name}", change, breaks


def _column_changes(old: Sequence[Json], new: Sequence[Json]) -> Iterator[_ColumnChange]:
    before = {column["name"]: column for column in old}
    after = {column["name"]: column for column in new}
    renamed = _renamed(old, new)
    for name, column in before.items():
        if name in renamed:
            yield name, f"renamed to {renamed[name]}", True
        elif name not in after:
            yield name, "removed", True
        else:
            yield from _one_column(name, column, after[name])
    kept = [name for name in before if name in after]
    yield from ((name, f"moved {where}", False) for name, where in moves(kept, [n for n in after if n in before]))
    for name, column in after.items():
        if name not in before and name not in renamed.values():
            yield name, f"added, {_type(column)}", False


def _one_column(name: str, old: Json, new: Json) -> Iterator[_ColumnChange]:
    if _type(old) != _type(new):
        yield name, f"{_type(old)} → {_type(new)}", True
    for change in key_changes(old, new, skip=("type",)):
        yield name, change, False


def _renamed(old: Sequence[Json], new: Sequence[Json]) -> dict[str, str]:
    """Returns old name → new name for columns that look renamed: same type, and same position or physical name."""
    kept = {column["name"] for column in old} & {column["name"] for column in new}
    gone, added = (
        [(position, column) for position, column in enumerate(columns) if column["name"] not in kept]
        for columns in (old, new)
    )
    renamed: dict[str, str] = {}
    for before, column in gone:
        for after, candidate in added:
            same_place = before == after or _physical(column) == _physical(candidate)
            free = candidate["name"] not in renamed.values()
            if same_place and free and _type(column) == _type(candidate):
                renamed[column["name"]] = candidate["name"]
                break
    return renamed


def _physical(column: Json) -> str:
    return str(column.get("source") or column["name"])


def _type(column: Json) -> ColumnType:
    return ColumnType.parse(column["type"])
