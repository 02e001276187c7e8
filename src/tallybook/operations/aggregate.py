"""aggregate: groups the selected rows and appends one summary row per group; nothing is removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.expressions.check import Typed
from tallybook.expressions.evaluate import Evaluator
from tallybook.model.columns import ROW_ID, UNKNOWN, ColumnType
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding, check_column_name, type_of_new_column, why_not_assignable
from tallybook.operations.grouping import BoundGrouping, Grouping, bind_grouping, grouped, sums_integers
from tallybook.operations.lookups import filtered
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows.segments import Segment, new_segment

if TYPE_CHECKING:
    from tallybook.rows.working import Rows


class Aggregate(Operation, type="aggregate"):
    """Appends a summary row per group of the selected rows."""

    reference: ClassVar[str] = """
    Adds one summary row for each group of the selected rows. The rows themselves stay.

    ```yaml
    operations:
      - seq: 20
        name: Totals by region
        type: aggregate
        arguments:
          group_by: [_period, region]
          aggregations:
            - {column: total_amount, expression: SUM(amount)}
            - {column: average_amount, expression: SUM(amount) / COUNT(*)}
    ```

    {arguments}

    - A summary row has the group's columns, the results and system columns; everything else is NULL. Its
      `_operation_seq` is that of the operation, by which later operations tell totals from details.
    - A system column in `group_by` carries the group's key: a summary by `_labels` has those labels, one by
      `_source_dataset_id` names that dataset, one by `_operation_seq` looks like a row of that operation. Only
      `_row_id` is always new.
    - NULL is a group of its own. No rows in, no rows out.
    - Every aggregation contains an [aggregate function](functions.md#aggregates), and may combine several. Result
      columns that are new are added to the working dataset; for existing ones the rule of `update` holds.
    - A sum of integers is an integer when it goes into an integer column, else a decimal.
    """

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
    def expressions(self) -> Mapping[str, Typed]:
        return {**super().expressions, **self.grouping.expressions("arguments")}

    @property
    def settings(self) -> Mapping[str, str]:
        return {"arguments.group_by": ", ".join(key.column for key in self.grouping.keys)}

    @property
    def adds(self) -> Mapping[str, str | None]:
        return self.grouping.columns("arguments")

    @property
    def keys(self) -> frozenset[str]:
        return super().keys | {key.column for key in self.grouping.keys}

    @property
    def per_expression(self) -> dict[str, Step]:
        from tallybook.operations.delete import DeleteStep

        results = self.grouping.per_expression("arguments").items()
        selecting = DeleteStep(self.seq, self.name, self.selector, self.before, self.before)
        return selecting.per_expression | {path: replace(self, grouping=grouping) for path, grouping in results}

    @property
    def summarises(self) -> BoundGrouping:
        return self.grouping

    def added_segment(self, input: SourceTable, evaluator: Evaluator) -> Segment:
        """A system column that is grouped by carries its key. Only `_row_id` is always new, because no two rows may
        have the same one."""
        new = new_segment(self.seq, input.dataset.id, input.table.name, evaluator.timestamp)
        return new.with_varying({name: self.after.columns[name] for name in self.adds}).with_nulls(self.after.columns)

    def add(self, rows: Rows | None, build: BuildContext) -> Rows:
        from tallybook.rows.working import group_rows

        assert rows is not None, "an aggregate reads working rows"
        keys = [key.column for key in self.grouping.keys]
        summary = build.summaries.get(self.seq)
        if summary is None:
            selected = filtered(rows, self, build)
            one_group = all(map(rows.has_one_value, keys))
            compiler = selected.compiler(build.compiler)
            summary = grouped(selected.frame, self.grouping, self.after.columns, compiler, one_group=one_group)
        segment = self.added_segment(build.input, build.evaluator)
        ids = {ROW_ID: build.ids.of_groups(self.seq, keys)}
        return group_rows(segment, summary, ids, keys, build.live[self.seq], rows.parts)
