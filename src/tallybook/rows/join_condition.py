"""The condition of a join, divided into what Spark can use: equalities of keys, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallybook.expressions.check import Typed, TypedCall, TypedColumn, argument, common_type, tables_read
from tallybook.expressions.decimals import exact_common
from tallybook.expressions.scope import Resolved
from tallybook.model.columns import ColumnType


@dataclass(frozen=True)
class Equality:
    """`own = theirs`: `theirs` reads only the joined table, `own` does not read it. `type` can hold both values."""

    own: Typed
    theirs: Typed
    type: ColumnType


@dataclass(frozen=True)
class Join:
    """A joined table: its alias, the condition in the parts Spark can use, and the columns wanted from it."""

    alias: str
    equalities: tuple[Equality, ...]
    rest: tuple[Typed, ...]
    columns: tuple[str, ...]

    @property
    def of_table(self) -> tuple[object, ...]:
        """What the rows of the joined table by key depend on, beside the table and the columns."""
        return self.alias, tuple((eq.theirs, eq.type) for eq in self.equalities), self.rest

    @property
    def key_columns(self) -> tuple[str, ...] | None:
        """The columns of the joined table that decide alone which row matches; None if there is more to it."""
        columns = [eq.theirs.column.column for eq in self.equalities if isinstance(eq.theirs, TypedColumn)]
        return tuple(columns) if columns and len(columns) == len(self.equalities) and not self.rest else None

    @property
    def is_reusable(self) -> bool:
        """True if every row has its match, also rows that need none: the keys are plain columns."""
        return not self.rest and all(isinstance(eq.own, TypedColumn) for eq in self.equalities)

    @property
    def working_keys(self) -> tuple[str, ...] | None:
        """The working columns that decide alone which row matches; None if there is more to it."""
        own = [eq.own.column for eq in self.equalities if isinstance(eq.own, TypedColumn)]
        is_plain = len(own) == len(self.equalities) and not self.rest
        return tuple(key.column for key in own) if is_plain and all(key.table is None for key in own) else None

    @property
    def match(self) -> tuple[object, ...]:
        """What decides which row matches: two joins of the same rows with the same `match` find the same ones."""
        return tuple((_value(eq.own), _value(eq.theirs), eq.type) for eq in self.equalities), self.rest

    @classmethod
    def on(cls, conditions: Sequence[Typed], alias: str, columns: Sequence[str]) -> Join:
        """Splits conditions into their equalities and the rest."""
        parts = [(part, _equality(part, alias)) for condition in conditions for part in _conjuncts(condition)]
        equalities = tuple(equality for _, equality in parts if equality is not None)
        return cls(alias, equalities, tuple(part for part, equality in parts if equality is None), tuple(columns))


def _conjuncts(condition: Typed) -> list[Typed]:
    if isinstance(condition, TypedCall) and condition.function.name == "AND":
        return [part for arg in condition.args for part in _conjuncts(arg)]
    return [condition]


def _equality(part: Typed, alias: str) -> Equality | None:
    if not (isinstance(part, TypedCall) and part.function.name == "="):
        return None
    for own, theirs in (part.args, reversed(part.args)):
        if tables_read(theirs) == {alias} and alias not in tables_read(own):
            type = _key_type(own, theirs)
            return Equality(own, theirs, type) if type is not None else None
    return None


def _value(typed: Typed) -> Typed | Resolved:
    """The column that an expression reads, in whatever way its name is written; any other expression itself."""
    return typed.column if isinstance(typed, TypedColumn) else typed


def _key_type(own: Typed, theirs: Typed) -> ColumnType | None:
    sides = [argument(own), argument(theirs)]
    if "decimal" in (own.type.kind, theirs.type.kind):
        return exact_common(*(side.widened for side in sides))
    return common_type(sides)
