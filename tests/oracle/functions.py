"""What functions are made of; the families beside this module define each of them, a few lines every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from tallybook.model.columns import ColumnType

from .expressions import Context, Meaning, require
from .values import FailedError, RefusedError, put

Args = Sequence[Meaning]
FUNCTIONS: dict[str, Callable[[Args, Context], Meaning]] = {}
AGGREGATES: dict[str, Callable[[Args], Meaning]] = {}
NUMBERS = ("integer", "decimal")
MOMENTS = ("date", "timestamp")
ORDERED = (*NUMBERS, *MOMENTS, "string")
ANYTHING = (*ORDERED, "boolean")


def function(*names: str) -> Callable[[Callable[[Args, Context], Meaning]], Callable[[Args, Context], Meaning]]:
    def note(define: Callable[[Args, Context], Meaning]) -> Callable[[Args, Context], Meaning]:
        FUNCTIONS.update(dict.fromkeys(names, define))
        return define

    return note


LAZY: ContextVar[bool] = ContextVar("lazy", default=False)
"""Whether a failure is overlooked where the result is known without it: beside a NULL, over a zero divisor, in
FALSE AND … and TRUE OR ….

The language does not say in which order arguments are computed. So there are two opinions, and where they differ the
engine may have either. IF, SWITCH and COALESCE compute only what they choose, always.
"""


def evaluated(args: Args, row: Any) -> list[Any]:
    """The values of all arguments; a lazy opinion keeps failures among them."""
    found: list[Any] = []
    for arg in args:
        try:
            found.append(arg.of(row))
        except FailedError as error:
            if not LAZY.get():
                raise
            found.append(error)
    return found


def require_all(found: Sequence[Any]) -> None:
    """Fails if one of them did."""
    for each in found:
        if isinstance(each, FailedError):
            raise each


def strict(type: ColumnType, compute: Callable[..., object], args: Args) -> Meaning:
    """A function that is NULL when an argument is; its result is put into its type."""

    def of(row: Any) -> object:
        given = evaluated(args, row)
        if any(value is None for value in given):
            return None
        require_all(given)
        return put(compute(*given), type)

    return Meaning(type, of)


def simple(name: str, kinds: Sequence[Sequence[str]], type: ColumnType, compute: Callable[..., object]) -> None:
    """Registers a strict function with fixed parameter kinds and result."""

    def define(args: Args, _context: Context) -> Meaning:
        if len(args) != len(kinds):
            raise RefusedError("TypeMismatch")
        return strict(type, compute, [require(arg, *kind) for arg, kind in zip(args, kinds, strict=True)])

    FUNCTIONS[name] = define


def defined() -> tuple[dict[str, Callable[[Args, Context], Meaning]], dict[str, Callable[[Args], Meaning]]]:
    """All functions and all aggregates."""
    from . import functions_logic, functions_numbers, functions_text  # noqa: F401  # each fills the two lists

    return FUNCTIONS, AGGREGATES
