"""What a strict reader says of a location: its rows, or why it must be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
NOTHING = "DataNotFound"


class MalformedError(Exception):
    """A location that must be refused: the type of the problem, a reason that reports count, and the detail."""

    def __init__(self, type: str, reason: str, detail: object = "") -> None:
        super().__init__(f"{reason} {detail}".strip())
        self.type = type
        self.reason = reason


@dataclass(frozen=True)
class StrictReading:
    """Rows by column name; `ordered` if their order is known."""

    rows: Sequence[Row] = ()
    columns: frozenset[str] = field(default_factory=frozenset)
    ordered: bool = False
