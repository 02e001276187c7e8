"""What a writer asks directly before rows become visible: may this run still write?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Guard:
    """A run's right to write one output. Writers call `check` as the last step before they publish."""

    check: Callable[[], None]
    """Raises the problem if the run was declared dead, or its period or project no longer lets it write."""
    output: str
    """A name that every run of the same project, period and output shares."""
    claim: int
    """A number that grows with every run and retry: rows of a later claim are never followed by those of an earlier."""


def _allow() -> None:
    pass


UNGUARDED = Guard(_allow, "", 0)
"""For writes that belong to no recorded run."""
