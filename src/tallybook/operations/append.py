"""append: adds rows of another dataset, filtered and optionally aggregated, with the working columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import PROBLEM_TYPES, did_you_mean
from tallybook.expressions.evaluate import Evaluator
from tallybook.model.base import Entity, Expression
from tallybook.model.columns import PERIOD, ROW_ID, UNKNOWN, ColumnType, why_reserved
from tallybook.model.dataset import DatasetRef
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding, why_not_assignable
from tallybook.operations.grouping import Grouping, sums_integers
from tallybook.operations.schema import SourceTable
from tallybook.operations.sources import Path, Source, SourceRows, bind_source, column_paths
from tallybook.rows.segments import Constant, Segment, new_segment

if TYPE_CHECKING:
    from tallybook.rows.working import Rows


DATASET: Path = ("arguments", "source", "dataset_id")


class AppendArguments(Entity):
    """The source whose rows are added. Its selector and aggregation may also be written beside it."""

    source: Source
    source_selector: Expression | None = None
    aggregation: Grouping | None = None


class Append(Operation, type="append"):
    """Adds rows of another dataset."""

    reference: ClassVar[str] = """
    Adds rows of another dataset.

    ```yaml
    operations:
      - seq: 30
        name: Budget by region
        type: append
        arguments:
          source:
            dataset_id: budgets
            selector: budget_version = "final"
            aggregation:
              group_by: [region]
              aggregations:
                - {column: amount, expression: SUM(amount)}
    ```

    {arguments}

    - The rows are those of the [source](#sources). Its `selector` may also be written as `source_selector` next to
      `source`, and its `aggregation` next to `source`, too.
    - Every business column that results must exist in the working dataset with a fitting type, else `ColumnMismatch`
      names all that do not. Columns the source lacks are NULL. No rows is fine.
    - System columns of the source are not taken over, except `_period`; this holds for an `aggregation` that groups by
      them, too.
    - An append has no `selector`: there are no working rows to choose from.
    """

    type: Literal["append"]
    arguments: AppendArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        return (self.arguments.source,)

    @property
    def conditions(self) -> tuple[str, ...]:
        beside = self.arguments.source_selector
        return (*super().conditions, *self.arguments.source.conditions, *(() if beside is None else (beside,)))

    def bind(self, binding: Binding) -> AppendStep | None:
        before = len(binding.problems)
        step = self._bind(binding)
        binding.problems[before:] = [
            problem.within(code=PROBLEM_TYPES[problem.type].append_code) for problem in binding.problems[before:]
        ]
        return step

    def _bind(self, binding: Binding) -> AppendStep | None:
        if self.selector is not None:
            binding.report(
                "InvalidArguments",
                "append does not take a selector",
                "selector",
                hint="choose the incoming rows with the `selector` of `source`",
            )
        arguments = self.arguments
        selector_path = self._written_at("selector", "source_selector", binding)
        grouping_path = self._written_at("aggregation", "aggregation", binding)
        beside = selector_path[-1] == "source_selector"
        source = arguments.source.model_copy(
            update={
                "selector": arguments.source_selector if beside else arguments.source.selector,
                "aggregation": arguments.aggregation or arguments.source.aggregation,
            }
        )
        rows = bind_source(
            source, binding, "arguments", "source", selector_path=selector_path, grouping_path=grouping_path
        )
        if rows is None:
            return None
        _check_alignment(rows, column_paths(source.aggregation, grouping_path), binding)
        schema = binding.before
        return AppendStep(self.seq, self.name, None, schema, schema, rows.columns, appends=rows)

    def _written_at(self, key: str, beside: str, binding: Binding) -> Path:
        """Returns the path of a key of the source, which may be written beside the source, too. Reports a key that is
        written in both places."""
        inner, outer = ("arguments", "source", key), ("arguments", beside)
        is_inner = getattr(self.arguments.source, key) is not None
        is_outer = getattr(self.arguments, beside) is not None
        if is_inner and is_outer:
            message = f"`{beside}` and the `{key}` of `source` say the same thing, and both are given"
            binding.report("InvalidArguments", message, *outer, hint="keep one of them")
        return outer if is_outer or (not is_inner and beside in self.arguments.model_fields_set) else inner


def _check_alignment(rows: SourceRows, paths: Mapping[str, Path], binding: Binding) -> None:
    """Checks that every incoming business column exists in the working dataset with a compatible type."""
    working = binding.before.business
    extra = [name for name in rows.columns if name not in working and not why_reserved(name)]
    if extra and not binding.before.open:
        names = ", ".join(f"'{name}'" for name in extra)
        nearest = did_you_mean(extra[0], working, near_only=True) if len(extra) == 1 else None
        binding.report(
            "ColumnMismatch",
            f"the rows to append have columns the working dataset does not have: {names}",
            *paths.get(extra[0], DATASET),
            hint=nearest or "create the columns with an earlier update, or leave them out with `aggregation`",
        )
    for name, type in rows.columns.items():
        target = working.get(name, UNKNOWN)
        typed = rows.grouping.results.get(name) if rows.grouping else None
        if UNKNOWN in (target, type) or (typed is not None and sums_integers(typed) and target.kind == "integer"):
            continue
        refusal = why_not_assignable(type, target)
        if refusal is not None:
            binding.report(
                "ColumnMismatch",
                f"column '{name}' is {target} in the working dataset, but {type} here",
                *paths.get(name, DATASET),
                hint=refusal[1],
            )


@dataclass(frozen=True)
class AppendStep(Step):
    """A checked append."""

    type: ClassVar[str] = "append"

    incoming: Mapping[str, ColumnType]
    """The business columns that the appended rows fill."""

    @property
    def rows(self) -> SourceRows:
        assert self.appends is not None
        return self.appends

    @property
    def adds(self) -> Mapping[str, str | None]:
        results = self.rows.grouping.columns(self.rows.grouping_path) if self.rows.grouping else {}
        return {name: results.get(name) for name in self.incoming}

    @property
    def shuffles(self) -> bool:
        return self.rows.grouping is not None

    @property
    def per_expression(self) -> dict[str, Step]:
        return {path: self._reduced(rows) for path, rows in self.rows.per_expression.items()}

    def _reduced(self, rows: SourceRows) -> AppendStep:
        columns = rows.columns if rows.grouping else {}
        incoming = {name: type for name, type in self.incoming.items() if name in columns}
        return replace(self, appends=rows, incoming=incoming)

    def added_segment(self, _input: SourceTable, evaluator: Evaluator) -> Segment:
        table = self.rows.table
        new = new_segment(self.seq, table.dataset.id, table.table.name, evaluator.timestamp)
        columns = {name: self.after.columns[name] for name in self.incoming}
        type = self.after.columns[PERIOD]
        own_period = self.rows.grouping is None or PERIOD in self.grouping_keys
        period = {} if own_period else {PERIOD: Constant(type, evaluator.period.identifier)}
        varying = columns | ({PERIOD: type} if own_period else {})
        return new.with_constants(period).with_varying(varying).with_nulls(self.after.columns)

    @property
    def grouping_keys(self) -> list[str]:
        """The columns that the incoming rows are grouped by."""
        return [key.column for key in self.rows.grouping.keys] if self.rows.grouping else []

    def add(self, _rows: Rows | None, build: BuildContext) -> Rows:
        from tallybook.rows import sql
        from tallybook.rows.working import group_rows, loaded_rows

        segment = self.added_segment(build.input, build.evaluator)
        incoming = self.rows.frame(build, self.before.columns)
        values = {name: sql.typed(sql.name(name), self.after.columns[name]) for name in self.incoming}
        live = build.live[self.seq]
        if self.rows.grouping is None:
            return loaded_rows(segment, incoming, {**values, ROW_ID: build.ids.of_rows(self.seq)}, live)
        ids = build.ids.of_groups(self.seq, self.grouping_keys)
        return group_rows(segment, incoming, {**values, ROW_ID: ids}, self.grouping_keys, live)
