"""Assignments: columns and the expressions that give their values, in an update and in the `set` of an allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.expressions.check import Typed
from tallybook.expressions.scope import Scope
from tallybook.model.base import Entity, Expression, Text
from tallybook.model.columns import ASSIGNABLE, UNKNOWN, ColumnType, folded
from tallybook.operations.binding import Binding, check_column_name, type_of_new_column, why_not_assignable

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.compile import Compiler


class Assignment(Entity):
    """A column and the value it gets."""

    column: Text
    expression: Expression


@dataclass(frozen=True)
class BoundAssignment:
    """A column, its type, and the checked value; the value is missing when it is wrong."""

    column: str
    type: ColumnType
    value: Typed | None


def bind_assignments(
    assignments: Sequence[Assignment], scope: Scope, binding: Binding, *path: str | int, over: bool = False
) -> list[BoundAssignment]:
    """Checks assignments that are written at a path; those whose column cannot be assigned are left out."""
    seen: set[str] = set()
    bound = []
    for index, assignment in enumerate(assignments):
        here = (*path, index)
        value = binding.expression(assignment.expression, scope, *here, "expression", over=over)
        column = assignment.column
        if not check_column_name(binding, column, *here, "column", settable=ASSIGNABLE):
            continue
        if folded(column) in seen:
            binding.report("DuplicateColumn", f"column '{column}' is assigned twice", *here, "column", hint="keep one")
            continue
        seen.add(folded(column))
        bound.append(BoundAssignment(column, _target_type(column, value, binding, *here), value))
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


def by_path(assignments: Sequence[BoundAssignment], path: str) -> dict[str, BoundAssignment]:
    """The assignments of a list that is written at a path, by the paths of their expressions."""
    return {f"{path}[{index}].expression": assignment for index, assignment in enumerate(assignments)}


def checked_values(assignments: Mapping[str, BoundAssignment]) -> dict[str, Typed]:
    """The values that are not wrong, by the paths of their expressions."""
    return {path: assignment.value for path, assignment in assignments.items() if assignment.value is not None}


def assigned_values(assignments: Sequence[BoundAssignment], compiler: Compiler) -> dict[str, Column]:
    """The new values, by column."""
    return {
        assignment.column: compiler.value(assignment.value, assignment.type)
        for assignment in assignments
        if assignment.value is not None
    }
