"""Three-valued logic on plain values: what is not needed to know the answer is not computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Value = Callable[[], Any]
"""Computes the value of an argument."""


def all_of(conditions: Iterable[Value]) -> bool | None:
    """True if all are, False if one is false, else None."""
    return _first(conditions, decisive=False)


def any_of(conditions: Iterable[Value]) -> bool | None:
    """True if one is, False if all are false, else None."""
    return _first(conditions, decisive=True)


def _first(conditions: Iterable[Value], *, decisive: bool) -> bool | None:
    known = True
    for condition in conditions:
        verdict: bool | None = condition()
        if verdict is decisive:
            return decisive
        known = known and verdict is not None
    return not decisive if known else None
