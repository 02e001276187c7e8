"""What functions are made of; the families beside this module define each of them, a few lines every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallybook.model.columns import ColumnType

from .expressions import Context, Meaning, require
from .readings import all_needed, attempt
from .values import RefusedError, put

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


def evaluated(args: Args, row: Any) -> list[Any]:
    """The values of all arguments; a lazy reading keeps failures among them."""
    return [attempt(arg.of, row) for arg in args]


def strict(type: ColumnType, compute: Callable[..., object], args: Args) -> Meaning:
    """A function that is NULL when an argument is; its result is put into its type."""

    def of(row: Any) -> object:
        given = evaluated(args, row)
        if any(value is None for value in given):
            return None
        all_needed(given)
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
    from . import (  # noqa: F401  # each fills the two lists
        functions_aggregates,
        functions_logic,
        functions_numbers,
        functions_patterns,
        functions_text,
    )

    return FUNCTIONS, AGGREGATES
