"""A toy operation, as a newcomer would write one: this file alone adds it. Importing the module registers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tallybook.expressions.check import Typed
from tallybook.model.base import Entity, Expression, Text
from tallybook.model.columns import BOOLEAN, UPDATED_AT
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding, check_column_name
from tallybook.operations.lookups import assign_columns, lookups_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import Rows


class FlagArguments(Entity):
    """What to flag, and where."""

    column: Text = Field(description="The column that takes the flag.")
    when: Expression = Field(description="The condition.")


class Flag(Operation, type="flag"):
    """Sets a column to whether a condition is true."""

    type: Literal["flag"]
    arguments: FlagArguments

    def bind(self, binding: Binding) -> FlagStep | None:
        when = binding.condition(self.arguments.when, binding.before.scope(), "arguments", "when")
        fits = check_column_name(binding, self.arguments.column, "arguments", "column")
        after = binding.before.with_column(self.arguments.column, BOOLEAN) if fits else binding.before
        if when is None or not fits:
            binding.after = after
            return None
        return FlagStep(self.seq, self.name, binding.selector(), binding.before, after, self.arguments.column, when)


@dataclass(frozen=True)
class FlagStep(Step):
    """A checked flag."""

    type: ClassVar[str] = "flag"

    column: str
    when: Typed

    @property
    def expressions(self) -> Mapping[str, Typed]:
        return {**super().expressions, "arguments.when": self.when}

    @property
    def writes(self) -> Mapping[str, str | None]:
        return {self.column: "arguments.when", UPDATED_AT: None}

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        return assign_columns(rows, self, lookups_of(self), self._value, build)

    def _value(self, compiler: Compiler) -> dict[str, Column]:
        from pyspark.sql import functions as F

        return {self.column: F.coalesce(compiler.column(self.when), F.lit(False))}
