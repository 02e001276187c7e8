"""Which operation last touched a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallybook.expressions.check import Typed
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.aggregate import AggregateStep
from tallybook.operations.append import AppendStep
from tallybook.operations.base import Step
from tallybook.operations.delete import DeleteStep
from tallybook.operations.update import UpdateStep
from tallybook.source import Place


@dataclass(frozen=True)
class Touch:
    """An operation that sets a column, and where in the project it says so."""

    seq: int
    operation: str
    place: Place | None

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"operation {self.seq} '{self.operation}'{where}"


def last_touch(steps: Sequence[Step], column: str, made_by: int, before: int | None) -> Touch | None:
    """The last operation that sets the column on a row made by `made_by`, before the output `before`.

    Which rows a selector took is not known here: an operation counts when it could have set the cell. None means the
    value came in with the data.
    """
    for step in reversed(steps):
        if step.seq < made_by or (before is not None and step.seq >= before):
            continue
        if step.seq == made_by:
            return _touch(step, _result(step, column))
        if _changes(step, column):
            return _touch(step, _assigned(step, column) or step.selector)
    return None


def _touch(step: Step, typed: Typed | None) -> Touch:
    return Touch(step.seq, step.name, typed.node.span.place if typed else None)


def _result(step: Step, column: str) -> Typed | None:
    """What fills a column of the rows an operation adds; the columns it does not fill are NULL by it too."""
    grouping = step.grouping if isinstance(step, AggregateStep | AppendStep) else None
    return grouping.results.get(column) if grouping else None


def _assigned(step: Step, column: str) -> Typed | None:
    assignments = step.assignments if isinstance(step, UpdateStep) else ()
    return next((assignment.value for assignment in assignments if assignment.column == column), None)


def _changes(step: Step, column: str) -> bool:
    """Whether an operation sets a column of rows that are there already."""
    if isinstance(step, DeleteStep):
        return column in (DELETED, UPDATED_AT)
    return isinstance(step, UpdateStep) and (column == UPDATED_AT or _assigned(step, column) is not None)
