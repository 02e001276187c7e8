"""The registry of functions and operators. The checker, the compiler, the reference pages and the tests read it.

A function is a declaration: name, parameters, result type, one line of meaning, an example that a test runs, how to
build it on Spark, and how to compute it on plain values. The modules in
`functions/` declare them; importing `functions` fills the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tallybook.model.columns import BOOLEAN, DATE, INTEGER, INTEGER_AS_DECIMAL, NULL, STRING, ColumnType, decimal

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.model.relative_period import RunPeriod


@dataclass(frozen=True)
class Accepts:
    """The kinds of type a parameter takes; `default` is what a bare NULL counts as there."""

    name: str
    kinds: frozenset[str]
    default: ColumnType = NULL

    def __contains__(self, type: ColumnType) -> bool:
        return type.kind in self.kinds or type == NULL


NUMBER = Accepts("a number", frozenset({"integer", "decimal"}), INTEGER)
WHOLE = Accepts("an integer", frozenset({"integer"}), INTEGER)
TEXT = Accepts("a string", frozenset({"string"}), STRING)
TRUTH = Accepts("a condition", frozenset({"boolean"}), BOOLEAN)
DAY = Accepts("a date", frozenset({"date"}), DATE)
DAY_OR_TIME = Accepts("a date or timestamp", frozenset({"date", "timestamp"}), DATE)
ORDERED = Accepts(
    "a number, string, date or timestamp", frozenset({"integer", "decimal", "string", "date", "timestamp"})
)
ANYTHING = Accepts("any value", frozenset({"integer", "decimal", "string", "boolean", "date", "timestamp"}))


@dataclass(frozen=True)
class Param:
    """One parameter. Parameters of one `group` are brought to one common type."""

    name: str
    accepts: Accepts
    group: str | None = None
    literal: bool = False
    """Must be written as a literal, so that the checker knows its value."""
    instead: str | None = None
    """What to do with a value that is not a literal."""


@dataclass(frozen=True)
class Argument:
    """The type of an argument, and its value if it is a literal. The compiler passes it to `build`."""

    type: ColumnType
    literal: object = None

    @property
    def widened(self) -> ColumnType:
        """The decimal type of a number; an integer literal needs only its own digits, not all 19."""
        if self.type == INTEGER and isinstance(self.literal, int):
            return decimal(len(str(abs(self.literal))), 0)
        return INTEGER_AS_DECIMAL if self.type == INTEGER else self.type


class Refusal(NamedTuple):
    """The message and hint for arguments that are wrong although each has an accepted type."""

    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Computing:
    """What a function may use to compute its value: the types of the call, the run's time and period."""

    args: Sequence[Argument]
    result: ColumnType
    timestamp: datetime
    period: RunPeriod


@dataclass(frozen=True)
class Building(Computing):
    """What a function may use to build its Spark column."""

    cast: Callable[[Column, ColumnType], Column]


Shape = tuple[Param, ...]


@dataclass(frozen=True)
class ResultType:
    """The type of a function's result: a rule, and the words for it on the reference page."""

    words: str
    rule: Callable[[Sequence[Argument]], ColumnType]

    def __call__(self, args: Sequence[Argument]) -> ColumnType:
        return self.rule(args)


@dataclass(frozen=True)
class Function:
    """A function, operator or aggregate of the language."""

    name: str
    family: str
    shapes: Callable[[int], Shape | None]
    """The parameters for a number of arguments, or None when it cannot be called so."""
    signature: str
    result: ResultType
    summary: str
    example: tuple[str, str]
    build: Callable[..., Column]
    compute: Callable[..., object] | None = field(kw_only=True)
    """Computes the value from plain Python values, without Spark; None for an aggregate. It gets the values of the
    arguments, none of them NULL. A `null_safe` function gets a function for each argument that computes its value."""
    aggregate: bool = False
    needs_all_values: bool = False
    """True for an aggregate that cannot be computed from partial results of a fixed size."""
    operator: bool = False
    aliases: tuple[str, ...] = ()
    refuse: Callable[[Sequence[Argument]], Refusal | None] = field(default=lambda _: None)
    null_safe: bool = False
    """True where a NULL argument does not simply make the result NULL."""
    repeats: Container[int] = ()
    """Indices of the arguments that `build` mentions more than once."""
    repeats_often: Container[int] = ()
    """Indices of the arguments that `build` mentions many times, so that only a column or literal is copied."""
    lazy: Container[int] = ()
    """Indices of the arguments that `build` gets as functions, because it may not need a column of each."""
    moves_dates: bool = False
    """True if it can compute a date outside the years 1 to 9999, which fails the run."""


FUNCTIONS: dict[str, Function] = {}
"""Every function under its name and aliases."""


def register(function: Function) -> Function:
    """Adds a function to the registry; raises ValueError for a name that is already registered."""
    for name in (function.name, *function.aliases):
        if name in FUNCTIONS:
            raise ValueError(f"function {name} is declared twice")
        FUNCTIONS[name] = function
    return function


def params(*shape: Param, optional: Sequence[Param] = (), repeat: Param | None = None) -> Callable[[int], Shape | None]:
    """Returns the parameters of a usual function: fixed ones, then optional ones, or one that repeats."""

    def choose(count: int) -> Shape | None:
        if repeat is not None and count >= len(shape):
            return (*shape, *[repeat] * (count - len(shape)))
        if len(shape) <= count <= len(shape) + len(optional):
            return (*shape, *optional[: count - len(shape)])
        return None

    return choose


def always(type: ColumnType) -> ResultType:
    """The result type that does not depend on the arguments."""
    return ResultType(str(type), lambda _args: type)


EVERY_ARGUMENT = range(2**31)


def same_as(index: int, words: str = "that of the value") -> ResultType:
    """The result type is the type of one argument."""
    return ResultType(words, lambda args: args[index].type)


def function_names(*, aggregate: bool | None = None) -> list[str]:
    """Callable names, for suggestions."""
    load_functions()
    return [
        name
        for name, function in FUNCTIONS.items()
        if name.replace("_", "").isalpha() and (aggregate is None or function.aggregate == aggregate)
    ]


def find_function(name: str) -> Function | None:
    """The function of that name or alias."""
    load_functions()
    return FUNCTIONS.get(name)


@cache
def load_functions() -> None:
    """Fills the registry once."""
    from tallybook.expressions import functions

    functions.load()
