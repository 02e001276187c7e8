"""Describes a segment: working rows of one origin, and the columns that have the same value in all of them.

The working dataset is a list of segments: the input rows, the rows of each append, the summary rows of each aggregate.
What is known of a segment decides which operations can select its rows, without Spark. Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from tallybook.errors import ProblemError
from tallybook.expressions.check import Typed, TypedCall
from tallybook.expressions.evaluate import Evaluator, UnknownValueError
from tallybook.expressions.scope import Resolved
from tallybook.model.columns import (
    BOOLEAN,
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    ROW_ID,
    SOURCE_DATASET_ID,
    SOURCE_TABLE,
    SYSTEM_COLUMNS,
    UPDATED_AT,
    ColumnType,
)

Value = str | int | bool | Decimal | date | datetime | None
"""A value of the expression language; None is NULL."""


@dataclass(frozen=True)
class Constant:
    """A value that a column has in every row of a segment."""

    type: ColumnType
    value: Value = None


@dataclass(frozen=True)
class Segment:
    """Rows of one origin. Every column of the working dataset is either a constant or varies."""

    made_by: int
    """The operation that made the rows; 0 for input rows."""
    varying: Mapping[str, ColumnType]
    constants: Mapping[str, Constant]

    @property
    def all_active(self) -> bool:
        """True if no row is deleted."""
        return self.constants.get(DELETED) == _NOT_DELETED

    def selects(
        self,
        selector: Typed | None,
        evaluator: Evaluator,
        *,
        include_deleted: bool = False,
        unmatched: Collection[str] = (),
    ) -> bool | None:
        """True if a selector selects every row, False if it selects none, None if that depends on the row. The columns
        of joined tables that are `unmatched` are NULL."""
        active = True if include_deleted else self._is_active()
        selected = True if selector is None else self.meets(selector, evaluator, unmatched)
        return _all_of((active, selected))

    def meets(self, condition: Typed, evaluator: Evaluator, unmatched: Collection[str] = ()) -> bool | None:
        """True if every row meets a condition, False if none does, None if that depends on the row."""
        return self._outcome(condition, self._knowing(evaluator, unmatched))

    def is_null(self, column: str) -> bool:
        """True if a column is NULL in every row."""
        constant = self.constants.get(column)
        return constant is not None and constant.value is None

    def _is_active(self) -> bool | None:
        deleted = self.constants.get(DELETED)
        return None if deleted is None else not deleted.value

    def known(self, typed: Typed, evaluator: Evaluator, unmatched: Collection[str] = ()) -> Constant | None:
        """The value of an expression, if it is the same in every row."""
        try:
            value = self._knowing(evaluator, unmatched).value(typed)
        except (UnknownValueError, ProblemError):  # what cannot be computed fails only if a row needs it
            return None
        return Constant(typed.type, value)  # type: ignore[arg-type]  # values of the language are those of a constant

    def _knowing(self, evaluator: Evaluator, unmatched: Collection[str] = ()) -> Evaluator:
        def read(column: Resolved) -> object:
            if column.table in unmatched:
                return None
            if column.table is not None or column.column not in self.constants:
                raise UnknownValueError
            return self.constants[column.column].value

        return replace(evaluator, read=read)

    def _outcome(self, condition: Typed, knowing: Evaluator) -> bool | None:
        """True or False if the condition is met by every row or by none; NULL is not met."""
        if isinstance(condition, TypedCall) and condition.function.name in ("AND", "OR"):
            parts = (self._outcome(part, knowing) for part in condition.args)
            return _all_of(parts) if condition.function.name == "AND" else _any_of(parts)
        try:
            return knowing.value(condition) is True
        except (UnknownValueError, ProblemError):
            return None

    def with_constants(self, constants: Mapping[str, Constant]) -> Segment:
        """With columns that have one value in every row."""
        varying = {name: type for name, type in self.varying.items() if name not in constants}
        return replace(self, varying=varying, constants={**self.constants, **constants})

    def with_varying(self, columns: Mapping[str, ColumnType]) -> Segment:
        """With columns that may differ from row to row."""
        constants = {name: constant for name, constant in self.constants.items() if name not in columns}
        return replace(self, varying={**self.varying, **columns}, constants=constants)

    def with_nulls(self, columns: Mapping[str, ColumnType]) -> Segment:
        """With every column of a schema: those that it does not have yet are NULL."""
        missing = {
            name: Constant(type)
            for name, type in columns.items()
            if name not in self.varying and name not in self.constants
        }
        return self.with_constants(missing) if missing else self

    def narrowed(self, columns: Collection[str]) -> Segment:
        """With those of the varying columns. The others are NULL: nothing that is ever looked at needs them."""
        return self.with_constants({name: Constant(type) for name, type in self.varying.items() if name not in columns})


_NOT_DELETED = Constant(BOOLEAN, value=False)


def new_segment(made_by: int, dataset_id: str, table: str, timestamp: datetime) -> Segment:
    """What is known of new rows: their system columns. Only `_row_id` varies."""
    constants: dict[str, Value] = {
        SOURCE_DATASET_ID: dataset_id,
        SOURCE_TABLE: table,
        OPERATION_SEQ: made_by,
        CREATED_AT: timestamp,
        UPDATED_AT: timestamp,
        DELETED: False,
        LABELS: "",
    }
    typed = {name: Constant(SYSTEM_COLUMNS[name], value) for name, value in constants.items()}
    return Segment(made_by, {ROW_ID: SYSTEM_COLUMNS[ROW_ID]}, typed)


def merged(segments: Iterable[Segment], columns: Mapping[str, ColumnType]) -> Segment:
    """The segment of all rows of several segments. A column stays a constant if it has the same value in all."""
    first, *others = segments
    same = {
        name: constant
        for name in columns
        if (constant := first.constants.get(name)) is not None
        and all(other.constants.get(name) == constant for other in others)
    }
    return Segment(first.made_by, {name: type for name, type in columns.items() if name not in same}, same)


def _all_of(outcomes: Iterable[bool | None]) -> bool | None:
    listed = list(outcomes)
    return False if False in listed else None if None in listed else True


def _any_of(outcomes: Iterable[bool | None]) -> bool | None:
    listed = list(outcomes)
    return True if True in listed else None if None in listed else False
