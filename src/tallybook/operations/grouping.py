"""Grouping and aggregating, shared by `aggregate` and the `aggregation` of a source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Typed, TypedCall, TypedCast, TypedColumn
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Resolved, Scope
from tallybook.expressions.tree import ColumnName
from tallybook.model.base import Entity, Expression, NonEmpty, Text
from tallybook.model.columns import INTEGER, ColumnType, folded
from tallybook.operations.binding import Binding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import KeepRows


class Aggregation(Entity):
    """A column and the aggregate that fills it."""

    column: Text
    expression: Expression


class Grouping(Entity):
    """Columns to group by, and what to compute for each group."""

    group_by: tuple[NonEmpty, ...]
    aggregations: tuple[Aggregation, ...]


@dataclass(frozen=True)
class BoundGrouping:
    """Checked keys and results. Results whose expression is wrong are missing."""

    keys: tuple[Resolved, ...]
    results: Mapping[str, Typed]

    def only(self, results: Collection[str]) -> BoundGrouping:
        """With those of its results."""
        return replace(self, results={name: typed for name, typed in self.results.items() if name in results})

    def columns(self, path: str) -> dict[str, str | None]:
        """The columns of a group's row: the keys, then the results with the paths of their expressions."""
        paths = {name: f"{path}.aggregations[{index}].expression" for index, name in enumerate(self.results)}
        return {key.column: None for key in self.keys} | paths

    def expressions(self, path: str) -> dict[str, Typed]:
        """The results by the paths of their expressions."""
        return {at: self.results[name] for name, at in self.columns(path).items() if at is not None}

    def per_expression(self, path: str) -> dict[str, BoundGrouping]:
        """With one result each, by the path of its expression."""
        return {
            at: replace(self, results={name: self.results[name]})
            for name, at in self.columns(path).items()
            if at is not None
        }


def bind_grouping(grouping: Grouping, scope: Scope, binding: Binding, *path: str | int) -> BoundGrouping | None:
    """Checks both lists; None when there is nothing to group by."""
    keys = bind_keys(grouping.group_by, scope, binding, *path)
    if not grouping.aggregations:
        binding.report(
            "EmptyAggregations",
            "an aggregation needs at least one result",
            *path,
            "aggregations",
            hint="add one, such as {column: total, expression: SUM(amount)}",
        )
    grouped = frozenset(key.physical for key in keys)
    results: dict[str, Typed] = {}
    seen: set[str] = set()
    for index, aggregation in enumerate(grouping.aggregations):
        here = (*path, "aggregations", index)
        typed = binding.expression(aggregation.expression, scope, *here, "expression", grouped=grouped)
        name = aggregation.column
        if folded(name) in seen or name in {key.column for key in keys}:
            what = "is computed twice" if folded(name) in seen else "is both grouped by and computed"
            binding.report("DuplicateColumn", f"column '{name}' {what}", *here, "column", hint="choose another name")
            continue
        seen.add(folded(name))
        if typed is not None:
            results[name] = typed
    return BoundGrouping(tuple(keys), results) if keys else None


def bind_keys(names: Sequence[str], scope: Scope, binding: Binding, *path: str | int) -> list[Resolved]:
    """Returns the columns to group by; reports those that do not exist, are named twice or belong to another table."""
    if not names:
        binding.report(
            "EmptyGroupBy",
            "an aggregation needs at least one column to group by",
            *path,
            "group_by",
            hint="for one total over all rows, group by _period",
        )
    keys: list[Resolved] = []
    for index, name in enumerate(names):
        here = (*path, "group_by", index)
        try:
            node = parse(binding.source_text(name, here))
        except ProblemError as error:
            binding.note(error.problem, *here)
            continue
        if not isinstance(node, ColumnName):
            binding.report("ColumnNotFound", f"'{name}' is not a column", *here, hint="compute it in an update first")
            continue
        own = replace(scope, tables=scope.tables[:1]) if len(node.parts) == 1 else scope
        column = own.resolve(node)
        if isinstance(column, Problem):
            binding.note(column, *here)
        elif column.table is not None:
            binding.report(
                "ColumnNotFound",
                f"'{name}' belongs to '{column.table}', not to the working rows, so a summary row cannot have it",
                *here,
                hint="copy it into a column with an update first, then group by that column",
            )
        elif column.column in {key.column for key in keys}:
            binding.report("DuplicateColumn", f"column '{column.column}' is grouped by twice", *here, hint="keep one")
        else:
            keys.append(column)
    return keys


def sums_integers(typed: Typed) -> bool:
    """SUM and SUM_IF of integers may be written into an integer column."""
    if not isinstance(typed, TypedCall):
        return False
    return typed.function.name in ("SUM", "SUM_IF") and typed.args[0].type == INTEGER


def is_mergeable(grouping: BoundGrouping) -> bool:
    """True if every result is computed from partial results of a fixed size, and reads no column outside them."""
    return all(map(_is_mergeable, grouping.results.values()))


def _is_mergeable(typed: Typed) -> bool:
    if isinstance(typed, TypedCall) and typed.function.aggregate:
        return not typed.function.needs_all_values
    if isinstance(typed, TypedCall):
        return all(map(_is_mergeable, typed.args))
    return _is_mergeable(typed.arg) if isinstance(typed, TypedCast) else not isinstance(typed, TypedColumn)


def grouped_together(
    frame: DataFrame,
    groupings: Mapping[int, BoundGrouping],
    types: Mapping[int, Mapping[str, ColumnType]],
    compiler: Compiler,
    keep: KeepRows,
) -> dict[int, DataFrame]:
    """Returns what `grouped` does for each of several groupings with the same results, and groups the rows once."""
    from pyspark.sql import functions as F

    from tallybook.expressions.compile import column_named
    from tallybook.rows import sql

    keys = tuple(dict.fromkeys(key for grouping in groupings.values() for key in grouping.keys))
    results = [(typed, types[seq][name]) for seq, one in groupings.items() for name, typed in one.results.items()]
    results = [result for index, result in enumerate(results) if result not in results[:index]]
    number, key_names = sql.internal("grouping"), {key: sql.internal(f"key {i}") for i, key in enumerate(keys)}
    result_names = [sql.internal(f"result {index}") for index in range(len(results))]

    sets = dict.fromkeys(tuple(key for key in keys if key in grouping.keys) for grouping in groupings.values())
    columns = {key: column_named(name) for key, name in key_names.items()}
    rows = frame.withColumns({name: compiler.read(key) for key, name in key_names.items()})
    values = [compiler.value(*result).alias(name) for result, name in zip(results, result_names, strict=True)]
    every = rows.groupingSets([[columns[key] for key in one] for one in sets], *columns.values())
    columns_kept = {name: key.type for key, name in key_names.items()} | {number: INTEGER}
    columns_kept |= {name: type for name, (_, type) in zip(result_names, results, strict=True)}
    groups = keep(every.agg(F.grouping_id().alias(number), *values), columns_kept)

    def of(seq: int, grouping: BoundGrouping) -> DataFrame:
        missing = "".join("0" if key in grouping.keys else "1" for key in keys)  # as Spark numbers the groupings
        taken = {key.column: key_names[key] for key in grouping.keys}
        for name, typed in grouping.results.items():
            taken[name] = result_names[results.index((typed, types[seq][name]))]
        own = groups.filter(column_named(number) == int(missing, 2))
        return own.select(*(column_named(internal).alias(name) for name, internal in taken.items()))

    return {seq: of(seq, grouping) for seq, grouping in groupings.items()}


def grouped(
    frame: DataFrame,
    grouping: BoundGrouping,
    types: Mapping[str, ColumnType],
    compiler: Compiler,
    *,
    one_group: bool = False,
) -> DataFrame:
    """One row per group: the keys under their names, and the results at the types given.

    With `one_group` every key has the same value in all rows. Then Spark needs no hash table, and moves all partial
    results to one partition instead of dividing them by their key.
    """
    keys = [compiler.read(key).alias(key.column) for key in grouping.keys]
    results = {name: compiler.value(typed, types[name]) for name, typed in grouping.results.items()}
    if not one_group:
        return frame.groupBy(*keys).agg(*(value.alias(name) for name, value in results.items()))
    return _one_group(frame, keys, results)


def _one_group(frame: DataFrame, keys: Sequence[Column], results: Mapping[str, Column]) -> DataFrame:
    """One row for all rows of a frame, and none if it has none. It has their count, too."""
    from pyspark.sql import functions as F

    from tallybook.rows import sql

    count = sql.internal("count")
    has_rows = F.count("*") > 0  # Spark makes a row without them, too, and some results cannot be computed then
    values = (F.when(has_rows, value).alias(name) for name, value in results.items())
    return frame.agg(*keys, *values, F.count("*").alias(count)).filter(f"{sql.name(count)} > 0")
