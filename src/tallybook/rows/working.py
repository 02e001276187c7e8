"""The rows of a segment as a Spark frame.

The frame has only the columns that vary. Constants become columns where rows leave: in an output, a group or a union.
Assignments wait until something reads what they set, so that many updates become one projection, and many rules for one
column become one CASE.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, reduce
from itertools import chain
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallybook.expressions.check import Typed
from tallybook.expressions.compile import Compiler, column_named
from tallybook.expressions.scope import Resolved
from tallybook.model.columns import CREATED_AT, DELETED, INTEGER, UPDATED_AT, ColumnType
from tallybook.rows import sql
from tallybook.rows.ids import POSITION, hash_of
from tallybook.rows.segments import Constant, Segment, merged
from tallybook.rows.system import null

KeepRows = Callable[[DataFrame, Mapping[str, ColumnType]], DataFrame]
"""Lets Spark compute rows with these columns once, although they are used several times."""
NUMBER = sql.internal("number")
"""A helper column with any whole number, which differs from row to row."""
_MOST_PARTS = 30
"""The most columns that an expression may read once Spark has written out every column that it reads.

Spark moves filters below projections, and then writes the expression of a column in place of the column. Ten updates
that read the column they set three times each would be a filter of 59,049 columns, which takes Spark minutes."""


@dataclass(frozen=True)
class _Choice:
    """The value that a column will get: that of the first condition that is true, else the old one."""

    old: Column
    cases: tuple[tuple[Column | None, Column], ...] = ()
    """The newest first. A condition of None is always true."""
    parts: int = 1
    """The columns that it reads; see `Rows.parts`."""

    def preceded_by(self, condition: Column | None, value: Column, parts: int) -> _Choice:
        cases = () if condition is None else self.cases
        return _Choice(self.old, ((condition, value), *cases), self.parts + parts)

    @property
    def column(self) -> Column:
        conditional = [(condition, value) for condition, value in self.cases if condition is not None]
        default = next((value for condition, value in self.cases if condition is None), self.old)
        if not conditional:
            return default
        (condition, value), *others = conditional
        return reduce(lambda case, other: case.when(*other), others, F.when(condition, value)).otherwise(default)


@dataclass(frozen=True)
class Rows:
    """Rows of one segment."""

    segment: Segment
    frame: DataFrame
    numbered: bool = False
    """True if the frame has NUMBER."""
    waiting: Mapping[str, _Choice] = field(default_factory=dict)
    """The assignments that are not in the frame yet."""
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The shared tables that are joined already, by alias, with their columns in the frame."""
    unmatched: Collection[str] = ()
    """The joined tables that match none of the rows: their columns are NULL and not in the frame."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """How many columns Spark would read in place of a column, if that is more than one."""

    def compiler(self, compiler: Compiler) -> Compiler:
        """Returns a compiler whose expressions read these rows."""

        def read(column: Resolved) -> Column:
            if column.table is None:
                return self.column(column.column)
            return null(column.type) if column.table in self.unmatched else column_named(column.physical)

        return replace(compiler, read=read)

    def column(self, name: str) -> Column:
        """The value of a column. It must not be waiting."""
        assert name not in self.waiting, f"{name} is read before it is assigned"
        return column_named(name) if name in self.segment.varying else F.expr(self._constant(name))

    def has_one_value(self, name: str) -> bool:
        """True if a column has the same value in all rows, and reading that value needs no row."""
        constant = self.segment.constants.get(name)
        return constant is not None and not isinstance(constant.value, datetime)

    def chosen(self, selector: Typed | None, compiler: Compiler, *, include_deleted: bool = False) -> Column | None:
        """The condition of an operation on these rows, for filters and WHEN; None if it is true for all of them."""
        condition = None if selector is None else compiler.column(selector)
        if include_deleted or self.segment.all_active:
            return condition
        active = ~self.column(DELETED)
        return active if condition is None else active & condition

    def ready(self, columns: Collection[str]) -> Rows:
        """The rows with these columns in the frame: nothing that is read may be waiting."""
        return self.settled() if self.waiting.keys() & columns else self

    def settled(self) -> Rows:
        """The rows with every assignment in the frame."""
        return self._settled if self.waiting else self

    @cached_property
    def _settled(self) -> Rows:
        """Made once, although several operations read the rows: Spark analyses each frame that is made."""
        large = {name for name, choice in self.waiting.items() if choice.parts > _MOST_PARTS}
        values = {
            name: _never_moved(choice.column) if name in large else choice.column
            for name, choice in self.waiting.items()
        }
        counted = {name: 1 if name in large else choice.parts for name, choice in self.waiting.items()}
        return replace(self, frame=self.frame.withColumns(values), waiting={}, parts={**self.parts, **counted})

    def assigned(
        self,
        values: Mapping[str, Column],
        chosen: Column | None,
        after: Segment,
        reads: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> Rows:
        """The rows with new values in the chosen ones. `after` is the segment that they become. `reads` are the columns
        that each value and the condition read, as often as they read them.

        The values and the condition must read nothing that is waiting. `_deleted` gets its value in all rows; see
        `deleted_or`.
        """
        waiting = {name: choice for name, choice in self.waiting.items() if name in after.varying}
        for name, value in values.items():
            if name in after.varying:
                choice = waiting.get(name) or _Choice(self._old(name, after.varying[name]), parts=self._parts(name))
                parts = sum(map(self._parts, reads.get(name, ())))
                waiting[name] = choice.preceded_by(None if name == DELETED else chosen, value, parts)
        return replace(self, segment=after, waiting=waiting)

    def deleted_or(self, selected: Column | None) -> Column:
        """True for rows that are deleted already, and for those that are selected; None stands for all.

        The condition is not evaluated on deleted rows. The old value is read once: with a condition that reads it, too,
        the expression would double with every delete.
        """
        if selected is None:
            return F.lit(True)
        selected = F.coalesce(selected, F.lit(False))
        return selected if self.segment.all_active else F.when(self.column(DELETED), True).otherwise(selected)

    def _parts(self, name: str) -> int:
        return self.parts.get(name, 1)

    def _old(self, name: str, type: ColumnType) -> Column:
        exists = name in self.segment.varying or name in self.segment.constants
        return self.column(name) if exists else null(type)

    def select(self, columns: Mapping[str, str]) -> DataFrame:
        """A frame with some columns: those of `columns` under its keys, in its order."""
        rows = self.ready(columns.values())
        return sql.select(rows.frame, {name: rows._value(column) for name, column in columns.items()})

    def narrowed(self, columns: Collection[str], joined: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> Rows:
        """The rows with those of the varying columns, and of the joined lookups, that are listed."""
        rows = self.settled()
        segment = rows.segment.narrowed(columns)
        names = [*segment.varying, *([NUMBER] if rows.numbered else []), *chain.from_iterable(joined.values())]
        return replace(rows, segment=segment, frame=rows.frame.selectExpr(*map(sql.name, names)), joined=joined)

    def without_joined(self, aliases: Collection[str]) -> Rows:
        """The rows without some of the joined tables, which do not fit them any more."""
        stale = [name for alias in aliases for name in self.joined.get(alias, ())]
        if not stale:
            return self
        rows = self.settled()
        joined = {alias: names for alias, names in rows.joined.items() if alias not in aliases}
        return replace(rows, joined=joined, frame=rows.frame.drop(*stale))

    def kept(self, keep: KeepRows) -> Rows:
        """The rows with a frame that `keep` makes of theirs, which has these columns."""
        helper = {NUMBER: INTEGER} if self.numbered else {}
        return replace(self, frame=keep(self.frame, {**self.segment.varying, **helper}), parts={})

    def _value(self, name: str) -> str:
        return sql.name(name) if name in self.segment.varying else self._constant(name)

    def _constant(self, name: str) -> str:
        return constant_sql(self.segment.constants[name], sql.name(NUMBER) if self.numbered else None)


def constant_sql(constant: Constant, number: str | None) -> str:
    """SQL for a constant. `number` keeps the time of a run out of generated code; see `sql.timestamp`."""
    if constant.value is None:
        return sql.typed(sql.NULL, constant.type)
    if isinstance(constant.value, datetime):
        return sql.timestamp(constant.value, number)
    literal = sql.text(constant.value) if isinstance(constant.value, str) else sql.text(str(constant.value))
    return literal if constant.type.kind == "string" else sql.typed(literal, constant.type)


def union(several: Sequence[Rows], columns: Mapping[str, ColumnType]) -> Rows:
    """The rows of several segments, in their order, with these columns."""
    if len(several) == 1:
        return several[0].ready(columns)
    segment = merged((rows.segment for rows in several), columns)
    numbered = all(rows.numbered for rows in several)
    several = [rows.ready(columns) for rows in several]
    frames = [_aligned(rows, segment, numbered=numbered) for rows in several]
    parts = {name: max(rows.parts.get(name, 1) for rows in several) for name in segment.varying}
    return Rows(segment, reduce(DataFrame.union, frames), numbered=numbered, parts=parts)


def _never_moved(value: Column) -> Column:
    """The same value, in an expression that Spark writes in place of no column, because it is not deterministic."""
    return F.when(F.expr("spark_partition_id() >= 0"), value)


def _aligned(rows: Rows, segment: Segment, *, numbered: bool) -> DataFrame:
    values = {name: rows._value(name) for name in segment.varying}
    helper = {NUMBER: sql.typed(sql.name(NUMBER), INTEGER)} if numbered else {}
    return sql.select(rows.frame, values | helper)


def loaded_rows(segment: Segment, frame: DataFrame, values: Mapping[str, str], live: frozenset[str]) -> Rows:
    """The rows of a loaded table, with the columns that are live. `values` are SQL for columns that the frame does not
    have as they should be. The frame has a POSITION if ids or times are live."""
    return _made_rows(segment, frame, values, sql.name(POSITION), live)


def group_rows(
    segment: Segment,
    frame: DataFrame,
    values: Mapping[str, str],
    keys: Sequence[str],
    live: frozenset[str],
    parts: Mapping[str, int] = MappingProxyType({}),
) -> Rows:
    """The rows of groups, one for each key, with the columns that are live. `values` are SQL for columns that the frame
    does not have as they should be. `parts` are those of the rows that were grouped: Spark moves a filter on a key
    below the grouping."""
    return replace(_made_rows(segment, frame, values, hash_of(keys), live), parts=parts)


def _made_rows(
    segment: Segment, frame: DataFrame, values: Mapping[str, str], number: str, live: frozenset[str]
) -> Rows:
    segment = segment.narrowed(live)
    numbered = not live.isdisjoint({CREATED_AT, UPDATED_AT})
    made = {name: F.expr(value) for name, value in values.items() if name in segment.varying}
    made |= {NUMBER: F.expr(number)} if numbered else {}
    return Rows(segment, frame.withColumns(made) if made else frame, numbered=numbered)
