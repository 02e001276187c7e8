"""update: sets columns of selected rows, with other datasets joined where needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.expressions.check import Typed
from tallybook.expressions.scope import Scope
from tallybook.model.base import Entity, Expression, NonEmpty, Text
from tallybook.model.columns import ASSIGNABLE, UNKNOWN, UPDATED_AT, ColumnType, folded
from tallybook.model.dataset import DatasetRef
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding, check_column_name, type_of_new_column, why_not_assignable
from tallybook.operations.lookups import assign_columns, lookups_of
from tallybook.operations.schema import JoinedTable

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import Rows


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

    reference: ClassVar[str] = """
    Sets columns of the selected rows. All expressions see the row as it was before the operation, so assignments cannot
    depend on each other; use two operations for that.

    ```yaml
    operations:
      - seq: 10
        name: Convert to the reporting currency
        type: update
        selector: amount IS NOT NULL
        arguments:
          joins:
            - {alias: rates, dataset_id: fx-rates, on: lines.currency = rates.currency}
          assignments:
            - {column: reporting_amount, expression: "ROUND(amount * rates.rate, 2)"}
            - {column: _labels, expression: 'CONCAT(_labels, "{converted}")'}
    ```

    {arguments}

    - A **new column** is NULL on rows that are not selected. `NULL` alone cannot make one: say the type,
      `TO_STRING(NULL)`.
    - An **existing column** keeps its type. An integer fits into a decimal; a decimal is rounded half up to the
      column's scale, and fails the run if it has too many digits before the point. Anything else is a `TypeMismatch`.
    - A **join** is a left join for this operation only. It never changes the number of rows: no match gives NULLs, and
      a second match for a selected row fails the run with `JoinNotUnique`. Rows are those of the dataset's main table
      after the [temporal filter](workspace-files.md#rows-and-time). `on` may read working columns, lookups and earlier
      aliases.
    - System columns cannot be assigned, except `_labels`. Selected rows get the run's timestamp in `_updated_at`.
    """

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
        return UpdateStep(self.seq, self.name, selector, binding.before, after, tuple(assigned), joins=tuple(joins))


@dataclass(frozen=True)
class BoundAssignment:
    """A column, its type, and the checked value; the value is missing when it is wrong."""

    column: str
    type: ColumnType
    value: Typed | None


def _bind_joins(joins: Sequence[RuntimeJoin], binding: Binding) -> tuple[list[JoinedTable], Scope]:
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
        scope = scope.with_table(source.scope_table(join.alias, joined=True))
        on = binding.condition(join.on, scope, *path, "on", named=False)
        if on is not None:
            bound.append(JoinedTable(join.alias, source, on))
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

    assignments: tuple[BoundAssignment, ...]

    @property
    def by_path(self) -> dict[str, BoundAssignment]:
        """The assignments by the paths of their expressions."""
        return {
            f"arguments.assignments[{index}].expression": assignment
            for index, assignment in enumerate(self.assignments)
        }

    @property
    def expressions(self) -> Mapping[str, Typed]:
        conditions = {f"arguments.joins[{index}].on": join.on for index, join in enumerate(self.joins)}
        values = {path: assignment.value for path, assignment in self.by_path.items() if assignment.value is not None}
        return {**super().expressions, **conditions, **values}

    @property
    def writes(self) -> Mapping[str, str | None]:
        return {UPDATED_AT: None} | {assignment.column: path for path, assignment in self.by_path.items()}

    @property
    def per_expression(self) -> dict[str, Step]:
        conditions: dict[str, Step] = dict.fromkeys(self.expressions, replace(self, assignments=()))
        return conditions | {
            path: replace(self, assignments=(assignment,)) for path, assignment in self.by_path.items()
        }

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        return assign_columns(rows, self, [*lookups_of(self), *self.joins], self._values, build)

    def _values(self, compiler: Compiler) -> dict[str, Column]:
        return {
            assignment.column: compiler.value(assignment.value, assignment.type)
            for assignment in self.assignments
            if assignment.value is not None
        }
