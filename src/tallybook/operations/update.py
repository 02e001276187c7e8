"""update: sets columns of selected rows, with other datasets joined where needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.expressions.check import Typed
from tallybook.expressions.scope import Scope
from tallybook.model.base import Entity, Expression, NonEmpty, Text
from tallybook.model.columns import ASSIGNABLE, UNKNOWN, ColumnType, folded
from tallybook.model.dataset import DatasetRef
from tallybook.operations.base import (
    Applying,
    Binding,
    Operation,
    Step,
    check_column_name,
    type_of_new_column,
    why_not_assignable,
)
from tallybook.operations.lookups import Beside, attached, lookups_of, with_values
from tallybook.operations.schema import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RuntimeJoin(DatasetRef):
    """A dataset joined for this operation only, readable as `alias.column`."""

    alias: NonEmpty
    on: Expression


class Assignment(Entity):
    """A column and the value it gets."""

    column: Text
    expression: Expression


class UpdateArguments(Entity):
    """`joins` make more columns readable; `assignments` set columns."""

    joins: tuple[RuntimeJoin, ...] = ()
    assignments: tuple[Assignment, ...]


class Update(Operation, type="update"):
    """Sets columns of the selected rows; all expressions see the row as it was before."""

    type: Literal["update"]
    arguments: UpdateArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        return self.arguments.joins

    def bind(self, binding: Binding) -> UpdateStep | None:
        joins, scope = _bind_joins(self.arguments.joins, binding)
        selector = binding.condition(self.selector, scope, "selector")
        if not self.arguments.assignments:
            binding.report(
                "EmptyAssignments",
                "an update needs at least one assignment",
                "arguments",
                "assignments",
                hint="add one, such as {column: net, expression: amount * 0.9}, or remove the operation",
            )
        assigned = _bind_assignments(self.arguments.assignments, scope, binding)
        after = binding.before
        for assignment in assigned:
            if assignment.column not in after.columns:
                after = after.with_column(assignment.column, assignment.type)
        return UpdateStep(self.seq, self.name, selector, binding.before, after, tuple(joins), tuple(assigned))


@dataclass(frozen=True)
class BoundAssignment:
    """A column, its type, and the checked value; the value is missing when it is wrong."""

    column: str
    type: ColumnType
    value: Typed | None


def _bind_joins(joins: Sequence[RuntimeJoin], binding: Binding) -> tuple[list[Beside], Scope]:
    """The joins in order; each condition sees the working columns, the lookups, earlier aliases and its own."""
    scope = binding.before.scope()
    bound = []
    for index, join in enumerate(joins):
        path = ("arguments", "joins", index)
        if folded(join.alias) in {folded(table.name) for table in scope.tables}:
            binding.report(
                "DuplicateColumn",
                f"the alias '{join.alias}' is already the name of a table, lookup or join here",
                *path,
                "alias",
                hint="choose another alias",
            )
            continue
        source = binding.dataset(join, *path)
        if source is None:
            scope = scope.with_open_table(join.alias)
            continue
        scope = scope.with_table(source.scope(join.alias, joined=True))
        on = binding.condition(join.on, scope, *path, "on", named=False)
        if on is not None:
            bound.append(Beside(join.alias, source, on))
    return bound, scope


def _bind_assignments(assignments: Sequence[Assignment], scope: Scope, binding: Binding) -> list[BoundAssignment]:
    seen: set[str] = set()
    bound = []
    for index, assignment in enumerate(assignments):
        path = ("arguments", "assignments", index)
        value = binding.expression(assignment.expression, scope, *path, "expression")
        column = assignment.column
        if not check_column_name(binding, column, *path, "column", settable=ASSIGNABLE):
            continue
        if folded(column) in seen:
            binding.report("DuplicateColumn", f"column '{column}' is assigned twice", *path, "column", hint="keep one")
            continue
        seen.add(folded(column))
        bound.append(BoundAssignment(column, _target_type(column, value, binding, *path), value))
    return bound


def _target_type(column: str, value: Typed | None, binding: Binding, *path: str | int) -> ColumnType:
    """The column's type after the update; an existing column keeps its own."""
    existing = binding.before.columns.get(column)
    if existing is None:
        return type_of_new_column(binding, column, value, *path)
    if value is None:
        return existing
    refusal = None if existing == UNKNOWN else why_not_assignable(value.type, existing)
    if refusal is not None:
        binding.report("TypeMismatch", f"column '{column}' {refusal[0]}", *path, "expression", hint=refusal[1])
    return existing


@dataclass(frozen=True)
class UpdateStep(Step):
    """A checked update."""

    type: ClassVar[str] = "update"

    joins: tuple[Beside, ...]
    assignments: tuple[BoundAssignment, ...]

    @property
    def expressions(self) -> dict[str, Typed]:
        found = dict(super().expressions)
        found |= {f"arguments.joins[{i}].on": join.on for i, join in enumerate(self.joins)}
        for index, assignment in enumerate(self.assignments):
            if assignment.value is not None:
                found[f"arguments.assignments[{index}].expression"] = assignment.value
        return found

    @property
    def alone(self) -> dict[str, Step]:
        single: dict[str, Step] = {path: replace(self, assignments=()) for path in self.expressions}
        for index, assignment in enumerate(self.assignments):
            single[f"arguments.assignments[{index}].expression"] = replace(self, assignments=(assignment,))
        return single

    @property
    def sources(self) -> tuple[SourceTable, ...]:
        return (*super().sources, *(join.source for join in self.joins))

    def column_at(self, path: str) -> str | None:
        by_path = {f"arguments.assignments[{i}].expression": a.column for i, a in enumerate(self.assignments)}
        return by_path.get(path)

    def join_condition(self, alias: str) -> Typed | None:
        return next((join.on for join in self.joins if join.alias == alias), None)

    def apply(self, frame: DataFrame, applying: Applying) -> DataFrame:
        from pyspark.sql import functions as F

        from tallybook.rows.system import null

        beside = attached(frame, self, [*lookups_of(self), *self.joins], applying)
        chosen = applying.chosen(self.selector)
        values = applying.stamp(chosen)
        for assignment in self.assignments:
            assert assignment.value is not None, "a step is applied only when its project has no problems"
            known = assignment.column in self.before.columns
            old = F.col(assignment.column) if known else null(assignment.type)
            new = applying.compiler.value(assignment.value, assignment.type)
            values[assignment.column] = applying.where(chosen, new, old)
        return with_values(beside, values, self)
