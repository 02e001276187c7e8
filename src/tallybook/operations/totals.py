"""Aggregates over groups of the rows that an update selects: `SUM(amount) OVER (region)`.

The groups are computed once for each list of keys and joined back to the rows. A window function would sort all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from tallybook.expressions.check import TypedOver
from tallybook.expressions.scope import Resolved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import KeepRows, Rows


@dataclass(frozen=True)
class Totals:
    """The aggregates over the groups of one list of keys."""

    groups: DataFrame
    """A row for each group."""
    keys: Mapping[Resolved, str]
    """The columns of `groups` that have the keys."""
    values: Mapping[TypedOver, str]
    """The columns of `groups` that have the aggregates."""

    def kept(self, keep: KeepRows) -> Totals:
        """The aggregates of groups that `keep` keeps."""
        types = {name: key.type for key, name in self.keys.items()}
        types |= {name: over.type for over, name in self.values.items()}
        return replace(self, groups=keep(self.groups, types))

    def joined_to(self, frame: DataFrame, compiler: Compiler) -> DataFrame:
        """Adds the aggregates of its group to each row. NULL is a key like any other."""
        from pyspark.sql import functions as F

        from tallybook.expressions.compile import column_named

        if not self.keys:
            return frame.crossJoin(F.broadcast(self.groups))
        same = [compiler.read(key).eqNullSafe(column_named(name)) for key, name in self.keys.items()]
        return frame.join(self.groups, reduce(lambda a, b: a & b, same), "left")


def compute_totals(rows: Rows, overs: Sequence[TypedOver], compiler: Compiler) -> tuple[Totals, ...]:
    """Computes aggregates over the groups of these rows."""
    from tallybook.rows import sql

    by_keys: dict[tuple[Resolved, ...], list[TypedOver]] = {}
    for over in dict.fromkeys(overs):
        by_keys.setdefault(over.keys, []).append(over)
    reading = rows.compiler(compiler)
    found = []
    for number, (keys, members) in enumerate(by_keys.items()):
        key_names = {key: sql.internal(f"total {number} key {index}") for index, key in enumerate(keys)}
        values = {over: sql.internal(f"total {number} value {index}") for index, over in enumerate(members)}
        grouped = rows.frame.groupBy(*(reading.read(key).alias(name) for key, name in key_names.items()))
        groups = grouped.agg(*(reading.value(over.call, over.type).alias(name) for over, name in values.items()))
        found.append(Totals(groups, key_names, values))
    return tuple(found)


def join_totals(rows: Rows, totals: Sequence[Totals], compiler: Compiler) -> Rows:
    """The rows with the aggregates of their groups as helper columns. `compiler` reads the rows."""
    return replace(rows, frame=reduce(lambda frame, one: one.joined_to(frame, compiler), totals, rows.frame))
