"""Describes what a check tests, and how its rows are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tallybook.expressions.check import Typed
from tallybook.model.columns import INTERNAL, ColumnType

OnFailure = Literal["fail", "warn"]
Unit = Literal["row", "group"]

PASSED = f"{INTERNAL}passed"
"""The column of tested rows that is true if the condition holds; it is never NULL."""


@dataclass(frozen=True)
class Assertion:
    """A condition that must hold for every row, or every group, that a step selects. NULL does not hold."""

    condition: Typed
    unit: Unit
    on_failure: OnFailure
    shown: Mapping[str, ColumnType]
    """What is shown of a row or group that fails, in order: its keys, then the values that the condition reads."""

    @property
    def columns(self) -> dict[str, str]:
        """The column of the tested rows behind each shown name. Users choose the names, so they are not columns."""
        return {name: f"{INTERNAL}shown{index}" for index, name in enumerate(self.shown)}
