"""Describes the differences of two JSON values in words, without knowing what the values mean."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tallybook.model.state import Json

_Item = TypeVar("_Item", int, str)
_ABSENT = object()
_NUMBERED_BY_SYSTEM = "version"


def key_changes(old: Json, new: Json, *, skip: Collection[str] = ()) -> Iterator[str]:
    """Yields the differences of two mappings, key by key, except the version number."""
    for key in _keys(old, new):
        if key not in (_NUMBERED_BY_SYSTEM, *skip):
            yield from _value_changes(key, old.get(key, _ABSENT), new.get(key, _ABSENT))


def _value_changes(path: str, old: Any, new: Any) -> Iterator[str]:
    """Yields the differences of two JSON values, down to the smallest named part."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in _keys(old, new):
            yield from _value_changes(f"{path}.{key}", old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(path, old, new)
    elif old is _ABSENT or old is None:
        yield f"{path} added: {_show(new)}"
    elif new is _ABSENT or new is None:
        yield f"{path} removed (was {_show(old)})"
    else:
        yield f"{path}: {_show(old)} → {_show(new)}"


def _list_changes(path: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    label = _label_of(old, new)
    if label is None:
        if len(old) != len(new) or not all(isinstance(item, Mapping) for item in [*old, *new]):
            yield f"{path}: {_show(old)} → {_show(new)}"
            return
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _value_changes(f"{path}[{index}]", before, after)
        return
    before = {item[label]: item for item in old}
    after = {item[label]: item for item in new}
    yield from (f"{path} '{name}' removed" for name in before if name not in after)
    yield from (f"{path} '{name}' added" for name in after if name not in before)
    common = [name for name in before if name in after]
    yield from (
        f"{path} '{name}' moved {where}" for name, where in moves(common, [name for name in after if name in before])
    )
    for name in common:
        yield from _value_changes(f"{path} '{name}'", before[name], after[name])


def _label_of(*lists: list[Any]) -> str | None:
    """Returns a key that all items of both lists have, with values that are unique within each list."""
    for label in ("name", "alias", "column", "id", "identifier"):
        names = [[item.get(label) if isinstance(item, Mapping) else None for item in items] for items in lists]
        if all(isinstance(name, str) for own in names for name in own) and all(
            len(set(own)) == len(own) for own in names
        ):
            return label
    return None


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= 80 else value[:79] + "…"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def _keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [*old, *(key for key in new if key not in old)]


def moves(before: Sequence[_Item], after: Sequence[_Item]) -> Iterator[tuple[_Item, str]]:
    """Yields the fewest items that must move to turn one order into the other, each with its new position."""
    rank = {item: index for index, item in enumerate(before)}
    staying = {after[index] for index in _longest_rising([rank[item] for item in after])}
    for index, item in enumerate(after):
        if item not in staying:
            following = next((other for other in after[index + 1 :] if other in staying), None)
            yield item, f"before {following}" if following is not None else f"after {after[index - 1]}"


def _longest_rising(values: Sequence[int]) -> list[int]:
    """The positions of a longest increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int | None] = []
    for index, value in enumerate(values):
        length = bisect_left(tails, value)
        previous.append(ends[length - 1] if length else None)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [index]
    chain: list[int] = []
    at: int | None = ends[-1] if ends else None
    while at is not None:
        chain.append(at)
        at = previous[at]
    return chain[::-1]
