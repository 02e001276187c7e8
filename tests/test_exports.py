"""What users may import is a list, written down twice so that it changes on purpose."""

from __future__ import annotations

from types import ModuleType

import tallybook

PUBLIC: list[str] = []
"""The names of `from tallybook import …`."""


def test_the_public_names_are_those_listed() -> None:
    assert getattr(tallybook, "__all__", []) == PUBLIC


def test_the_list_is_sorted() -> None:
    assert sorted(PUBLIC, key=str.casefold) == PUBLIC


def test_nothing_else_is_reachable() -> None:
    reachable = {name for name, value in vars(tallybook).items() if not isinstance(value, ModuleType)}
    assert {name for name in reachable if not name.startswith("_")} - {"annotations"} == set(PUBLIC)
