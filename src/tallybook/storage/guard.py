"""What a writer asks directly before rows become visible: may this run still write?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tallybook.errors import fail


@dataclass(frozen=True)
class Guard:
    """A run's right to write one output. Writers call `check` as the last step before they publish."""

    check: Callable[[], None]
    """Raises the problem if the run was declared dead, or its period or project no longer lets it write."""
    output: str
    """A name that every run of the same project, period and output shares, in whichever workspace and store."""
    claim: int
    """A number that grows with every run and retry: rows of a later claim are never followed by those of an earlier."""
    rivals: tuple[str, ...] = ()
    """Runs that began to append the same rows and may not be dead. If one has written by now, nothing is appended."""

    def refuse_rival(self, rival: str, target: str) -> NoReturn:
        """Refuses to append beside the rows of a rival."""
        raise fail(
            "AlreadyAppended",
            f"run {rival}, which was declared dead, has appended to {target} after this run began",
            hint=f"`tallybook runs {rival}` shows it; start a new run, or with --again to append once more",
        )


def _allow() -> None:
    pass


UNGUARDED = Guard(_allow, "", 0)
"""For writes that belong to no recorded run."""
