"""Compiles a typed tree to a Spark column of exactly the type that the checker inferred.

A function's `build` returns exactly the type it declares. There is no corrective cast afterwards, because each cast is
a level of nesting and Spark Connect cannot send expressions of more than about fifty levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from math import inf
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.check import (
    Typed,
    TypedCall,
    TypedCast,
    TypedColumn,
    TypedLiteral,
    TypedOver,
    TypedParameter,
    argument,
)
from tallybook.expressions.functions.dates import day, timestamp_literal
from tallybook.expressions.functions.raising import refusing
from tallybook.expressions.functions.spark import computed_once
from tallybook.expressions.registry import Building, Function
from tallybook.expressions.scope import Resolved
from tallybook.expressions.tree import quote
from tallybook.model.columns import DATE, INTEGER, NULL, ColumnType
from tallybook.model.relative_period import RunPeriod

SMALL = 12
"""An expression of at most this many parts is copied where a function needs it more than once."""

FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"

_SIMPLE: dict[str, T.DataType] = {
    "string": T.StringType(),
    "integer": T.LongType(),
    "boolean": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "null": T.NullType(),
}


def spark_type(type: ColumnType) -> T.DataType:
    """The Spark type that holds values of a column type."""
    return T.DecimalType(type.precision, type.scale) if type.kind == "decimal" else _SIMPLE[type.kind]


def type_name(type: ColumnType) -> str:
    """Returns the type in SQL. Plain `timestamp` would depend on a setting of the session."""
    return "timestamp_ltz" if type.kind == "timestamp" else spark_type(type).simpleString()


def column_named(name: str) -> Column:
    """The column with exactly this name."""
    return F.col(quote(name))


def working_column(column: Resolved) -> Column:
    """A column by its name in the frame."""
    return column_named(column.physical)


@dataclass(frozen=True)
class Compiler:
    """Compiles expressions of one run: its time, period and parameters are constants in them."""

    timestamp: datetime
    period: RunPeriod
    read: Callable[[Resolved], Column] = working_column
    parameters: Mapping[str, object] = field(default_factory=dict)
    totals: Mapping[TypedOver, str] = field(default_factory=dict)
    """The columns that have the values of aggregates over groups."""

    def column(self, typed: Typed) -> Column:
        """The Spark column of a checked expression."""
        if isinstance(typed, TypedLiteral):
            return _literal(typed.value, typed.type)
        if isinstance(typed, TypedColumn):
            return self.read(typed.column)
        if isinstance(typed, TypedOver):
            return column_named(self.totals[typed])
        if isinstance(typed, TypedParameter):
            return _literal(self.parameters[typed.name], typed.type)
        if isinstance(typed, TypedCast):
            return cast(self.column(typed.arg), typed.type)
        assert isinstance(typed, TypedCall)
        return self._call(typed)

    def value(self, typed: Typed, target: ColumnType) -> Column:
        """The expression as a value of `target`, at its scale."""
        column = self.column(typed)
        return column if typed.type == target else cast(column, target)

    def _call(self, typed: TypedCall) -> Column:
        lazy = typed.function.lazy
        args: list[Any] = [
            partial(self.column, arg) if i in lazy else self.column(arg) for i, arg in enumerate(typed.args)
        ]
        arguments = [argument(arg) for arg in typed.args]
        building = Building(arguments, typed.type, self.timestamp, self.period, cast)
        large = [i for i, arg in enumerate(typed.args) if _size(arg) > _copied_size(typed.function, i)]
        built = _computed_once(large, args, lambda columns: typed.function.build(building, *columns))
        if not (typed.function.moves_dates and typed.type == DATE and len(args) > 1):
            return built
        name = "" if typed.function.operator else typed.function.name
        return _computed_once([0] if _size(typed) > SMALL else [], [built], lambda dates: _in_calendar(name, *dates))


def _copied_size(function: Function, index: int) -> float:
    """The parts of the largest argument that may be copied wherever `build` mentions it."""
    if index in function.repeats_often:
        return 2
    return SMALL if index in function.repeats else inf


def _size(typed: Typed) -> int:
    inner = typed.args if isinstance(typed, TypedCall) else (typed.arg,) if isinstance(typed, TypedCast) else ()
    return 1 + sum(map(_size, inner))


def _computed_once(
    indices: Sequence[int], columns: Sequence[Column], build: Callable[[Sequence[Column]], Column]
) -> Column:
    """Gives `build` some columns as variables, since Spark copies a column wherever it is mentioned.

    Without that a plan doubles with every level of nesting. A variable costs more than copying something small.
    """
    if not indices:
        return build(columns)
    index, *others = indices

    def bind(value: Column) -> Column:
        return _computed_once(others, [*columns[:index], value, *columns[index + 1 :]], build)

    return computed_once(columns[index], bind)


def _in_calendar(function: str, date: Column) -> Column:
    """Fails for a date outside the years 1 to 9999, which Spark would accept but Python and databases cannot hold."""
    outside = (date < F.lit(FIRST_DAY).cast("date")) | (date > F.lit(LAST_DAY).cast("date"))
    return F.when(outside, refusing(function, date, "is outside the years 1 to 9999")).otherwise(date)


def cast(column: Column, type: ColumnType) -> Column:
    """Casts a column by the name of the type: PySpark makes six calls to the JVM for a type object."""
    return column if type == NULL else column.cast(type_name(type))


def _literal(value: object, type: ColumnType) -> Column:
    """Returns a literal column. Decimals are sent as text, so that no client rounds them; integers get 64 bits."""
    if type.kind == "decimal":
        assert isinstance(value, int | Decimal)
        return cast(F.lit(format(value, "f") if isinstance(value, Decimal) else str(value)), type)
    if isinstance(value, datetime):
        return timestamp_literal(value)
    if isinstance(value, date):
        return day(value)
    return cast(F.lit(value), type) if type == INTEGER else F.lit(value)
