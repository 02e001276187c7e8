"""aggregate: groups the selected rows and appends one summary row per group; nothing is removed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.expressions.check import Typed
from tallybook.model.columns import ROW_ID, UNKNOWN, ColumnType
from tallybook.operations.base import (
    Applying,
    Binding,
    Operation,
    Step,
    check_column_name,
    type_of_new_column,
    why_not_assignable,
)
from tallybook.operations.grouping import BoundGrouping, Grouping, bind_grouping, grouped, sums_integers
from tallybook.operations.lookups import with_lookups
from tallybook.operations.schema import WorkingSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Aggregate(Operation, type="aggregate"):
    """Appends a summary row per group of the selected rows."""

    type: Literal["aggregate"]
    arguments: Grouping = Field(validation_alias=AliasChoices("arguments", "parameters"))

    def bind(self, binding: Binding) -> AggregateStep | None:
        selector = binding.selector()
        grouping = bind_grouping(self.arguments, binding.before.scope(), binding, "arguments")
        after = self._after(grouping, binding)
        if grouping is None:
            binding.after = after
            return None
        return AggregateStep(self.seq, self.name, selector, binding.before, after, grouping)

    def _after(self, grouping: BoundGrouping | None, binding: Binding) -> WorkingSchema:
        """The schema with new result columns; into existing ones the update typing rule applies."""
        after = binding.before
        results = grouping.results if grouping else {}
        for index, aggregation in enumerate(self.arguments.aggregations):
            path = ("arguments", "aggregations", index)
            name, typed = aggregation.column, results.get(aggregation.column)
            if check_column_name(binding, name, *path, "column"):
                existing = binding.before.business.get(name)
                if existing is None:
                    after = after.with_column(name, type_of_new_column(binding, name, typed, *path))
                elif typed is not None and existing != UNKNOWN:
                    _check_fits(name, typed, existing, binding, *path)
        return after


def _check_fits(name: str, typed: Typed, existing: ColumnType, binding: Binding, *path: str | int) -> None:
    if sums_integers(typed) and existing.kind == "integer":
        return
    refusal = why_not_assignable(typed.type, existing)
    if refusal is not None:
        binding.report("TypeMismatch", f"column '{name}' {refusal[0]}", *path, "expression", hint=refusal[1])


@dataclass(frozen=True)
class AggregateStep(Step):
    """A checked aggregate."""

    type: ClassVar[str] = "aggregate"

    grouping: BoundGrouping

    @property
    def expressions(self) -> dict[str, Typed]:
        results = enumerate(self.grouping.results.values())
        return super().expressions | {f"arguments.aggregations[{i}].expression": typed for i, typed in results}

    @property
    def alone(self) -> dict[str, Step]:
        from tallybook.operations.delete import DeleteStep

        results = self.grouping.alone("arguments").items()
        selecting = DeleteStep(self.seq, self.name, self.selector, self.before, self.before)
        return selecting.alone | {path: replace(self, grouping=grouping) for path, grouping in results}

    def column_at(self, path: str) -> str | None:
        return self.grouping.column_at(path, "arguments")

    def apply(self, frame: DataFrame, applying: Applying) -> DataFrame:
        """Adds the summary rows. A system column that is grouped by carries its key; only `_row_id` is always new,
        because no two rows may have the same one."""
        from tallybook.rows import sql
        from tallybook.rows.ids import hash_of
        from tallybook.rows.system import added, fresh, untouched

        beside = with_lookups(frame, self, applying)
        chosen = applying.chosen(self.selector)
        rows = beside if chosen is None else beside.filter(chosen)
        summary = grouped(rows, self.grouping, self.after.columns, applying.compiler)
        keys = [key.column for key in self.grouping.keys]
        made = fresh(
            self.seq,
            applying.ids.of_groups(self.seq, keys),
            applying.input.dataset.id,
            applying.input.table.name,
            sql.NULL,
            sql.moment(applying.timestamp, hash_of(keys)),
        )
        own = untouched([*self.grouping.results, *(key for key in keys if key != ROW_ID)])
        return added(frame, summary, self.after.columns, made | own)
