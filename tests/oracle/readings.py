"""Which failures count: three readings of the same language, because it leaves open when a value is computed.

The engine may have the plain reading's result or failure. It may have the rows of the lazy reading, and it may fail
where the eager one does. A value that something visible needs fails in all three; it is a NULL in none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from enum import Enum
from typing import Any

from .values import FailedError


class Reading(Enum):
    """When an expression is computed. IF, SWITCH and COALESCE compute only what they choose, always."""

    PLAIN = "for every row it stands for, with all its parts"
    LAZY = "where its value matters: not in a cell that is overwritten unread, not where the result is known without it"
    EAGER = (
        "as in PLAIN; also without a row where none is needed to compute it: constants, keys of an empty joined table;"
        " and aggregates in a branch that is not chosen"
    )


READING: ContextVar[Reading] = ContextVar("reading", default=Reading.PLAIN)


def attempt(compute: Callable[..., Any], *args: Any) -> Any:
    """The value; in a lazy reading a failure is one, too: kept in a cell or among arguments until somebody needs it."""
    try:
        return compute(*args)
    except FailedError as error:
        if READING.get() is not Reading.LAZY:
            raise
        return error


def needed(value: Any) -> Any:
    """The value, for somebody who cannot do without: fails if computing it did."""
    if isinstance(value, FailedError):
        raise value
    return value


def all_needed(found: Iterable[Any]) -> None:
    for each in found:
        needed(each)


def at_start(compute: Callable[..., object], *args: Any) -> None:
    """Computes what does not wait for a row or a choice, and may fail by that, if the reading is an eager one."""
    if READING.get() is Reading.EAGER:
        compute(*args)
