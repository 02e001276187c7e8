"""check: tests a condition on rows or groups, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Typed, TypedCall, TypedCast, TypedColumn, columns_read
from tallybook.expressions.parse import parse
from tallybook.expressions.registry import find_function
from tallybook.expressions.scope import Resolved
from tallybook.expressions.tree import Call, Over, walk
from tallybook.model.base import Entity, Expression, NonEmpty
from tallybook.model.columns import ROW_ID
from tallybook.operations.assertion import PASSED, Assertion, OnFailure
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.grouping import bind_keys
from tallybook.operations.lookups import filtered
from tallybook.operations.schema import WorkingSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tallybook.rows.working import Rows


class CheckArguments(Entity):
    """The condition, the groups it is tested on, and what a failure does."""

    group_by: tuple[NonEmpty, ...] = ()
    assert_: Expression = Field(alias="assert")
    on_failure: OnFailure = "fail"


class Check(Operation, type="check"):
    """Tests a condition on the selected rows, or on groups of them."""

    reference: ClassVar[str] = """
    Tests a condition on the selected rows, or on groups of them. It changes nothing.

    ```yaml
    operations:
      - seq: 85
        name: Every region has a positive total
        type: check
        selector: amount IS NOT NULL
        arguments:
          group_by: [region]
          assert: SUM(amount) > 0
      - seq: 86
        name: Every row has a region
        type: check
        arguments: {assert: region IS NOT NULL, on_failure: warn}
    ```

    {arguments}

    - A condition without an [aggregate function](functions.md#aggregates) is tested on each selected row. With one it
      is tested on each group of `group_by`; without `group_by` all selected rows are one group. That group is tested
      even if it has no rows: `SUM(amount)` is NULL then, and `COUNT(*)` is 0.
    - A condition that is NULL has failed.
    - The result says how many rows or groups were tested and how many failed. It shows up to five of those, the first
      ones in the order of what is shown: of a row the natural key of the input dataset (without one, its `_row_id`) and
      the columns that the condition reads, of a group its keys and its aggregates.
    - `fail` ends the run with `CheckFailed` before any later output is written; outputs before the check stay. `warn`
      adds a warning to the run. The results of all checks are kept with the run.
    - If nothing is selected, a check of rows, or of groups with `group_by`, passes: the result says "0 rows tested". To
      make sure that there are rows, test `COUNT(*) > 0`, or use [`min_rows`](workspace-files.md#project).
    - The checks between two outputs are computed together, immediately before the second one.
    """

    type: Literal["check"]
    arguments: CheckArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    def bind(self, binding: Binding) -> CheckStep | None:
        selector = binding.selector()
        path = ("arguments", "assert")
        grouped = bool(self.arguments.group_by)
        keys = bind_keys(self.arguments.group_by, binding.scope(), binding, "arguments") if grouped else []
        text = self.arguments.assert_
        if not text.strip():
            hint = "write a condition, such as SUM(amount) = 0"
            binding.report("InvalidArguments", "the check tests nothing: `assert` is blank", *path, hint=hint)
            return None
        of_groups = grouped or _summarises(text)
        by = frozenset(key.physical for key in keys) if of_groups else None
        before = len(binding.problems)
        condition = binding.condition(text, binding.scope(), *path, named=False, grouped=by)
        if of_groups:
            binding.problems[before:] = [_with_way_out(problem, grouped) for problem in binding.problems[before:]]
        if condition is None or len(keys) < len(self.arguments.group_by):
            return None
        shown = _shown_of_group(keys, condition) if of_groups else _shown_of_row(binding.before, condition)
        assertion = Assertion(
            condition,
            "group" if of_groups else "row",
            self.arguments.on_failure,
            {name: typed.type for name, typed in shown.items()},
        )
        schema = binding.before
        return CheckStep(
            self.seq, self.name, selector, schema, schema, tuple(keys), tuple(shown.values()), tests=assertion
        )


def _with_way_out(problem: Problem, grouped: bool) -> Problem:
    """Adds to a condition that mixes rows and groups how to test rows."""
    if problem.type != "InvalidAggregation" or problem.hint is None:
        return problem
    rows = (
        "remove `group_by` to test each row"
        if grouped
        else "to compare each row with a total, put that into a column with an update first: AVG(amount) OVER ()"
    )
    return replace(problem, hint=f"{problem.hint}; {rows}")


def _summarises(text: str) -> bool:
    """True if a condition has an aggregate function without OVER. What cannot be read is reported later."""
    try:
        nodes = list(walk(parse(text)))
    except ProblemError:
        return False
    over = {id(node.call) for node in nodes if isinstance(node, Over)}
    calls = [node for node in nodes if isinstance(node, Call) and id(node) not in over]
    return any((function := find_function(call.name)) is not None and function.aggregate for call in calls)


def _shown_of_row(schema: WorkingSchema, condition: Typed) -> dict[str, Typed]:
    """What identifies a row, and the columns that its condition reads."""
    key = [name for name in schema.natural_key if name in schema.columns] or [ROW_ID]
    identity = [Resolved(None, name, schema.columns[name]) for name in key]
    columns = dict.fromkeys([*identity, *columns_read(condition)])
    return {_name(column): TypedColumn(condition.node, column.type, column) for column in columns}


def _shown_of_group(keys: Sequence[Resolved], condition: Typed) -> dict[str, Typed]:
    """The keys of a group, and the aggregates in its condition."""
    named = {_name(key): TypedColumn(condition.node, key.type, key) for key in keys}
    return named | {" ".join(call.node.span.text.split()): call for call in _aggregates(condition)}


def _aggregates(typed: Typed) -> Iterator[TypedCall]:
    if isinstance(typed, TypedCast):
        yield from _aggregates(typed.arg)
    elif isinstance(typed, TypedCall):
        if typed.function.aggregate:
            yield typed
        else:
            for arg in typed.args:
                yield from _aggregates(arg)


def _name(column: Resolved) -> str:
    return column.column if column.table is None else f"{column.table}.{column.column}"


def _holds(condition: Column) -> Column:
    """True if a condition is true; NULL is a failure."""
    from pyspark.sql import functions as F

    return F.coalesce(condition, F.lit(False))


@dataclass(frozen=True)
class CheckStep(Step):
    """A checked check."""

    type: ClassVar[str] = "check"

    group_by: tuple[Resolved, ...]
    shown: tuple[Typed, ...]
    """What is shown of a failure, in the order of `tests.shown`."""

    @property
    def expressions(self) -> Mapping[str, Typed]:
        assert self.tests is not None
        return {**super().expressions, "arguments.assert": self.tests.condition}

    @property
    def settings(self) -> Mapping[str, str]:
        assert self.tests is not None
        groups = {"arguments.group_by": ", ".join(key.column for key in self.group_by)} if self.group_by else {}
        return {**groups, "arguments.on_failure": self.tests.on_failure}

    @property
    def keys(self) -> frozenset[str]:
        shown = {column.column for typed in self.shown for column in columns_read(typed) if column.table is None}
        return super().keys | shown

    @property
    def per_expression(self) -> dict[str, Step]:
        from tallybook.operations.delete import DeleteStep

        selecting = DeleteStep(self.seq, self.name, self.selector, self.before, self.before)
        return {**selecting.per_expression, "arguments.assert": self}

    def verdict(self, rows: Rows, build: BuildContext) -> Column:
        from pyspark.sql import functions as F

        assert self.tests is not None
        compiler = rows.compiler(build.compiler)
        passed = _holds(compiler.column(self.tests.condition))
        chosen = rows.chosen(self.selector, compiler)
        return passed if chosen is None else F.when(chosen, passed)

    def rows_to_test(self, rows: Rows, build: BuildContext) -> DataFrame:
        assert self.tests is not None
        selected = filtered(rows, self, build)
        frame, compiler = selected.frame, selected.compiler(build.compiler)
        passed = _holds(compiler.column(self.tests.condition)).alias(PASSED)
        names = self.tests.columns.values()
        values = [compiler.column(typed).alias(name) for typed, name in zip(self.shown, names, strict=True)]
        if self.tests.unit == "row":
            return frame.select(*values, passed)
        count = len(self.group_by)
        return frame.groupBy(*values[:count]).agg(*values[count:], passed)
