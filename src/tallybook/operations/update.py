"""update: sets columns of selected rows, with other datasets joined where needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.expressions.check import Typed
from tallybook.expressions.scope import PARAMETERS, Scope
from tallybook.model.base import Entity, Expression, NonEmpty
from tallybook.model.columns import UPDATED_AT, folded
from tallybook.model.dataset import DatasetRef
from tallybook.operations.assignments import (
    Assignment,
    BoundAssignment,
    assigned_values,
    bind_assignments,
    by_path,
    checked_values,
)
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.lookups import assign_columns, lookups_of, tables_behind, totals_of
from tallybook.operations.source_time import bind_validity
from tallybook.operations.sources import JoinedTable, Source, bind_joined_source

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler
    from tallybook.operations.totals import Totals
    from tallybook.rows.working import Rows


class RuntimeJoin(Source):
    """A source joined for this operation only, readable as `alias.column`."""

    alias: NonEmpty
    on: Expression


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
      aliases. A join is a [source](#sources): `selector` chooses among its rows, `aggregation` summarises them before
      they are joined, and `alias.column` then reads the result.
    - An **aggregate with OVER** reads all rows that the operation selects: `amount / SUM(amount) OVER (region)` is the
      share of a row in the total of its region, `OVER ()` takes all of them as one group. NULL is a group of its own.
      Like every expression it sees the rows as they were before the operation.
    - System columns cannot be assigned, except `_labels`. Selected rows get the run's timestamp in `_updated_at`.
    """

    type: Literal["update"]
    arguments: UpdateArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        return self.arguments.joins

    @property
    def conditions(self) -> tuple[str, ...]:
        return (*super().conditions, *(text for join in self.arguments.joins for text in join.conditions))

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
        assigned = bind_assignments(self.arguments.assignments, scope, binding, "arguments", "assignments", over=True)
        after = binding.before
        for assignment in assigned:
            if assignment.column not in after.columns:
                after = after.with_column(assignment.column, assignment.type)
        return UpdateStep(self.seq, self.name, selector, binding.before, after, tuple(assigned), joins=tuple(joins))


def _bind_joins(joins: Sequence[RuntimeJoin], binding: Binding) -> tuple[list[JoinedTable], Scope]:
    """The joins in order; each condition sees the working columns, the lookups, earlier aliases and its own."""
    scope = binding.scope()
    bound = []
    for index, join in enumerate(joins):
        path = ("arguments", "joins", index)
        if folded(join.alias) in {folded(table.name) for table in scope.tables}:
            reserved = folded(join.alias) == PARAMETERS and bool(binding.parameters)
            taken = "used for parameters" if reserved else "the name of a table, lookup or join"
            binding.report(
                "DuplicateColumn",
                f"the alias '{join.alias}' is already {taken} here",
                *path,
                "alias",
                hint="choose another alias",
            )
            continue
        rows = bind_joined_source(join, binding, *path, alias=join.alias)
        if rows is None:
            scope = scope.with_open_table(join.alias)
            continue
        scope = scope.with_table(rows.scope_table(join.alias))
        on = binding.condition(join.on, scope, *path, "on", named=False)
        valid = bind_validity(join, join.alias, rows.table, scope, binding, *path)
        if on is not None:
            bound.append(JoinedTable(join.alias, rows, on, valid))
    return bound, scope


@dataclass(frozen=True)
class UpdateStep(Step):
    """A checked update."""

    type: ClassVar[str] = "update"

    assignments: tuple[BoundAssignment, ...]

    @property
    def by_path(self) -> dict[str, BoundAssignment]:
        """The assignments by the paths of their expressions."""
        return by_path(self.assignments, "arguments.assignments")

    @property
    def expressions(self) -> Mapping[str, Typed]:
        conditions = {
            f"arguments.joins[{index}].{key}": condition
            for index, join in enumerate(self.joins)
            for key, condition in zip(("on", "as_of"), join.conditions, strict=False)
        }
        return {**super().expressions, **conditions, **checked_values(self.by_path)}

    @property
    def writes(self) -> Mapping[str, str | None]:
        return {UPDATED_AT: None} | {assignment.column: path for path, assignment in self.by_path.items()}

    @property
    def per_expression(self) -> dict[str, Step]:
        conditions: dict[str, Step] = dict.fromkeys(self.expressions, replace(self, assignments=()))
        values = {path: replace(self, assignments=(assignment,)) for path, assignment in self.by_path.items()}
        return conditions | self.source_checks | values

    def narrowed(self, wanted: Collection[str], droppable: Collection[str]) -> Step | None:
        whole = super().narrowed(wanted, droppable)
        if whole is None or not self.joined_aliases <= set(droppable):
            return whole
        assignments = tuple(assignment for assignment in self.assignments if assignment.column in wanted)
        read = [] if self.selector is None else [self.selector]
        read += [assignment.value for assignment in assignments if assignment.value is not None]
        needed = tables_behind(read, self.joins)
        return replace(self, assignments=assignments, joins=tuple(one for one in self.joins if one.alias in needed))

    def totals(self, rows: Rows, build: BuildContext) -> tuple[Totals, ...]:
        return totals_of(rows, self, build)

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        return assign_columns(rows, self, [*lookups_of(self), *self.joins], self._values, build)

    def _values(self, compiler: Compiler) -> dict[str, Column]:
        return assigned_values(self.assignments, compiler)
