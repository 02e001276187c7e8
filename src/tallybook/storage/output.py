"""What a writer needs to know about an output besides its rows: its name, its mode, and the run's right to write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from tallybook.errors import fail
from tallybook.storage.ownership import output_name

WriteMode = Literal["overwrite", "append", "error"]


@dataclass(frozen=True)
class Guard:
    """A run's right to write one output. Writers call `check` as the last step before they publish."""

    check: Callable[[], None]
    """Raises a problem if the run was declared dead, or its period or project no longer lets it write."""
    output: str
    """A name that all runs of the same project, period and output share, in every workspace and store."""
    claim: int
    """A number that grows with every run and retry. Rows of an earlier claim never replace those of a later one."""
    rivals: tuple[str, ...] = ()
    """Runs that began to append the same rows and may still be alive. If one has written, nothing is appended."""

    def refuse_rival(self, rival: str, target: str) -> NoReturn:
        """Raises AlreadyAppended, because a rival has appended its rows."""
        raise fail(
            "AlreadyAppended",
            f"run {rival}, which was declared dead, has appended to {target} after this run began",
            hint=f"`tallybook runs {rival}` shows it; start a new run, or use --again to append once more",
        )


def _allow() -> None:
    pass


UNGUARDED = Guard(_allow, "", 0)
"""For writes that belong to no recorded run."""


@dataclass(frozen=True)
class Output:
    """An output of a run. Writing it again replaces what it wrote before."""

    run_id: str
    seq: int
    """The operation that writes it."""
    mode: WriteMode = "overwrite"
    guard: Guard = UNGUARDED
    """Checked directly before the rows become visible."""

    @property
    def name(self) -> str:
        """The beginning of the names of its files and folders."""
        return output_name(self.run_id, self.seq)
