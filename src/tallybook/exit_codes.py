"""The exit codes of the command line, by what a scheduler should do next.

This is the only table: errors name one of its rows, the command line returns the code, and the reference page is
made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ExitCode:
    """How a command ended: its number, what it means, and what a scheduler should do."""

    code: int
    name: str
    meaning: str
    advice: str
    retry: bool = False
    """True if the same command may succeed later without a change of the project or the data."""


FINE = ExitCode(0, "fine", "The command did what it was asked to do.", "Go on.")
WRONG = ExitCode(
    1,
    "wrong",
    "A definition, the data, a check or a test is wrong, the run was refused, or it failed for a reason that no other "
    "code covers.",
    "Do not retry. A person must look.",
)
USAGE = ExitCode(2, "usage", "The command was used wrongly.", "Do not retry. Correct the command.")
BUG = ExitCode(
    3, "bug", "A bug of Tallybook. The traceback is in a file whose path is printed.", "Do not retry. Report it."
)
BUSY = ExitCode(
    4,
    "busy",
    "Another process holds what the command needs: another run of the project and period, a lock of the store, a "
    "conflicting write to the destination, a file that was written while the run read it.",
    "Retry after a few minutes.",
    retry=True,
)
UNAVAILABLE = ExitCode(
    5,
    "unavailable",
    "Something that the command needs is lost, full or cannot be reached: Spark, the metadata store, a database, a "
    "disk.",
    "Retry later. If it lasts, the people who run that system must look.",
    retry=True,
)
INTERRUPTED = ExitCode(130, "interrupted", "Ctrl-C (SIGINT) ended the command.", "A person decided. Do not retry.")
TERMINATED = ExitCode(
    143,
    "terminated",
    "SIGTERM ended the command: a scheduler stopped it, or the machine shut down.",
    "Retry if the scheduler did not mean to end it.",
)

EXIT_CODES = (FINE, WRONG, USAGE, BUG, BUSY, UNAVAILABLE, INTERRUPTED, TERMINATED)


def common_exit(exits: Iterable[ExitCode]) -> ExitCode:
    """Returns the exit code of several failures: the one they share, else WRONG; FINE if there are none."""
    different = set(exits)
    return different.pop() if len(different) == 1 else WRONG if different else FINE
