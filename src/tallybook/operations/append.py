"""append: adds rows of another dataset, filtered and optionally aggregated, with the working columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import PROBLEM_TYPES, did_you_mean
from tallybook.expressions.check import Typed
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.scope import Scope
from tallybook.model.base import Entity, Expression
from tallybook.model.columns import PERIOD, RESERVED, ROW_ID, UNKNOWN, ColumnType, why_reserved
from tallybook.model.dataset import DatasetRef
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding, why_not_assignable
from tallybook.operations.grouping import BoundGrouping, Grouping, bind_grouping, grouped, sums_integers
from tallybook.operations.schema import SourceTable
from tallybook.rows.segments import Constant, Segment, new_segment

if TYPE_CHECKING:
    from tallybook.rows.working import Rows


Path = tuple[str | int, ...]
SOURCE: Path = ("arguments", "source", "dataset_id")


class AppendArguments(Entity):
    """Which dataset, which of its rows, and whether to aggregate them first."""

    source: DatasetRef
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
          source: {dataset_id: budgets}
          source_selector: budget_version = "final"
          aggregation:
            group_by: [region]
            aggregations:
              - {column: amount, expression: SUM(amount)}
    ```

    {arguments}

    - The rows are those of the source's main table after the temporal filter, then `source_selector`, then
      `aggregation`.
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
        own = self.arguments.source_selector
        return super().conditions if own is None else (*super().conditions, own)

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
                hint="filter the incoming rows with `source_selector`",
            )
        source = binding.dataset(self.arguments.source, "arguments", "source")
        if source is None:
            return None
        scope = Scope((source.scope_table(source.table.name, joined=False),))
        condition = binding.condition(self.arguments.source_selector, scope, "arguments", "source_selector")
        grouping = None
        incoming: Mapping[str, ColumnType] = source.table.business_types
        if self.arguments.aggregation is not None:
            grouping = bind_grouping(self.arguments.aggregation, scope, binding, "arguments", "aggregation")
            if grouping is None:
                return None
            incoming = _results(grouping)
        paths = _column_paths(self.arguments.aggregation)
        for name in grouping.results if grouping else ():
            if reason := why_reserved(name):
                binding.report("SystemColumn", f"{reason} and cannot be set", *paths[name], hint="choose another name")
        _check_alignment(incoming, grouping, paths, binding)
        schema = binding.before
        return AppendStep(self.seq, self.name, None, schema, schema, condition, grouping, incoming, appends=source)


def _results(grouping: BoundGrouping) -> dict[str, ColumnType]:
    """The business columns an aggregation yields."""
    keys = {key.column: key.type for key in grouping.keys if key.column not in RESERVED}
    return keys | {name: typed.type for name, typed in grouping.results.items()}


def _check_alignment(
    incoming: Mapping[str, ColumnType], grouping: BoundGrouping | None, paths: Mapping[str, Path], binding: Binding
) -> None:
    """Checks that every incoming business column exists in the working dataset with a compatible type."""
    working = binding.before.business
    extra = [name for name in incoming if name not in working and not why_reserved(name)]
    if extra and not binding.before.open:
        names = ", ".join(f"'{name}'" for name in extra)
        nearest = did_you_mean(extra[0], working, near_only=True) if len(extra) == 1 else None
        binding.report(
            "ColumnMismatch",
            f"the rows to append have columns the working dataset does not have: {names}",
            *paths.get(extra[0], SOURCE),
            hint=nearest or "create the columns with an earlier update, or leave them out with `aggregation`",
        )
    for name, type in incoming.items():
        target = working.get(name, UNKNOWN)
        typed = grouping.results.get(name) if grouping else None
        if UNKNOWN in (target, type) or (typed is not None and sums_integers(typed) and target.kind == "integer"):
            continue
        refusal = why_not_assignable(type, target)
        if refusal is not None:
            binding.report(
                "ColumnMismatch",
                f"column '{name}' is {target} in the working dataset, but {type} here",
                *paths.get(name, SOURCE),
                hint=refusal[1],
            )


def _column_paths(aggregation: Grouping | None) -> dict[str, Path]:
    """Returns the path at which each result column of an aggregation is named."""
    if aggregation is None:
        return {}
    path = ("arguments", "aggregation")
    keys = {name.rpartition(".")[2]: (*path, "group_by", i) for i, name in enumerate(aggregation.group_by)}
    return keys | {one.column: (*path, "aggregations", i, "column") for i, one in enumerate(aggregation.aggregations)}


@dataclass(frozen=True)
class AppendStep(Step):
    """A checked append."""

    type: ClassVar[str] = "append"

    condition: Typed | None
    grouping: BoundGrouping | None
    incoming: Mapping[str, ColumnType]
    """The business columns that the appended rows fill."""

    @property
    def expressions(self) -> Mapping[str, Typed]:
        condition = {} if self.condition is None else {"arguments.source_selector": self.condition}
        return condition | (self.grouping.expressions("arguments.aggregation") if self.grouping else {})

    @property
    def adds(self) -> Mapping[str, str | None]:
        results = self.grouping.columns("arguments.aggregation") if self.grouping else {}
        return {name: results.get(name) for name in self.incoming}

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key.column for key in self.grouping.keys) if self.grouping else frozenset(self.incoming)

    @property
    def shuffles(self) -> bool:
        return self.grouping is not None

    @property
    def per_expression(self) -> dict[str, Step]:
        choosing: dict[str, Step] = dict.fromkeys(super().per_expression, replace(self, grouping=None, incoming={}))
        if self.grouping is None:
            return choosing
        results = self.grouping.per_expression("arguments.aggregation").items()
        keys = {key.column: self.incoming[key.column] for key in self.grouping.keys if key.column in self.incoming}
        return choosing | {
            path: replace(self, grouping=one, incoming=keys | {name: self.incoming[name] for name in one.results})
            for path, one in results
        }

    def added_segment(self, _input: SourceTable, evaluator: Evaluator) -> Segment:
        assert self.appends is not None
        new = new_segment(self.seq, self.appends.dataset.id, self.appends.table.name, evaluator.timestamp)
        columns = {name: self.after.columns[name] for name in self.incoming}
        type = self.after.columns[PERIOD]
        own_period = self.grouping is None or PERIOD in self.grouping_keys
        period = {} if own_period else {PERIOD: Constant(type, evaluator.period)}
        varying = columns | ({PERIOD: type} if own_period else {})
        return new.with_constants(period).with_varying(varying).with_nulls(self.after.columns)

    @property
    def grouping_keys(self) -> list[str]:
        """The columns that the incoming rows are grouped by."""
        return [key.column for key in self.grouping.keys] if self.grouping else []

    def add(self, _rows: Rows | None, build: BuildContext) -> Rows:
        from tallybook.rows import sql
        from tallybook.rows.working import group_rows, loaded_rows

        assert self.appends is not None
        segment = self.added_segment(build.input, build.evaluator)
        incoming = build.load(self.appends)
        if self.condition is not None:
            incoming = incoming.filter(build.compiler.column(self.condition))
        values = {name: sql.typed(sql.name(name), self.after.columns[name]) for name in self.incoming}
        if self.grouping is None:
            return loaded_rows(segment, incoming, {**values, ROW_ID: build.ids.of_rows(self.seq)})
        groups = grouped(incoming, self.grouping, self.before.columns, build.compiler)
        ids = build.ids.of_groups(self.seq, self.grouping_keys)
        return group_rows(segment, groups, {**values, ROW_ID: ids}, self.grouping_keys)
