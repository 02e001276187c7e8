"""allocate: distributes amounts over targets, exact to the last digit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import did_you_mean
from tallybook.expressions.check import Typed, TypedLiteral, cast_to
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.registry import NUMBER
from tallybook.expressions.scope import Scope, joined_name
from tallybook.expressions.tree import Literal as LiteralNode
from tallybook.model.base import Entity, Expression, NonEmpty
from tallybook.model.columns import (
    BOOLEAN,
    DELETED,
    INTEGER,
    LABELS,
    NULL,
    PERIOD,
    ROW_ID,
    SOURCE_DATASET_ID,
    SOURCE_TABLE,
    STRING,
    UPDATED_AT,
    VALIDITY_COLUMNS,
    ColumnType,
    folded,
)
from tallybook.model.dataset import DatasetRef
from tallybook.operations.assignments import (
    Assignment,
    BoundAssignment,
    assigned_values,
    bind_assignments,
    by_path,
    checked_values,
)
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.lookups import assign_columns, filtered, lookups_of, no_values
from tallybook.operations.schema import SourceTable
from tallybook.operations.source_time import bind_validity
from tallybook.operations.sources import JoinedTable, Source, bind_joined_source
from tallybook.rows.segments import Segment, new_segment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.working import Rows

TARGETS = "targets"
"""The alias of the targets in expressions."""
_TAKEN_OVER = (PERIOD, SOURCE_DATASET_ID, SOURCE_TABLE, *VALIDITY_COLUMNS)
"""The system columns that new rows have of the row whose amount they share."""


class AllocateArguments(Entity):
    """What is distributed, to which targets, and by which driver."""

    amount: NonEmpty
    to: Source
    driver: Expression
    match: Expression | None = None
    set: tuple[Assignment, ...] = ()
    pool: Literal["keep", "delete", "reverse"] = "keep"


class Allocate(Operation, type="allocate"):
    """Distributes the amounts of the selected rows over targets."""

    reference: ClassVar[str] = """
    Distributes the amount of each selected row, the pool, over the rows of another dataset, the targets, in proportion
    to a driver. The new rows of a pool row sum to its amount, to the last digit.

    ```yaml
    operations:
      - seq: 60
        name: Shared services by headcount
        type: allocate
        selector: region = "SHARED"
        arguments:
          amount: amount
          to: {dataset_id: headcount, selector: heads > 0}
          driver: targets.heads
          match: targets.kind = "actual" AND targets.region <> lines.region
          set:
            - {column: region, expression: targets.region}
          pool: reverse
    ```

    {arguments}

    - Each pool row gets one new row for each target that `match` lets it reach and whose driver is above zero. Without
      `match` it reaches all targets. The columns of a target are read as `targets.column`.
    - A share is the amount times the driver, divided by the sum of the drivers, rounded down to the last digit of the
      column. What is left goes to the largest fractions, one unit of the last digit each; equal ones in the order of
      the target's natural key, or of all its columns if its dataset has none. Targets with the same key are ordered by
      the columns that the operation reads. Negative amounts are distributed like positive ones. NULL is distributed as
      NULL. Amount and driver together can have 38 digits, decimals included; zeros at the end of all drivers do not
      count. Round a driver that has more.
    - `set` gives columns of the new rows; expressions read the pool row and the target. The other columns are those of
      the pool row, `_period` and `_source_dataset_id` too. Ids and times are new, and `_labels` is empty, as in an
      append.
    - `pool` says what becomes of the pool rows: `keep` leaves them as they are, `delete` marks them as deleted,
      `reverse` leaves them and adds a row with the negative amount for each.
    - A pool row with no target, or with zero drivers only, fails the run with `AllocationFailed`, and so does a driver
      that is NULL or negative. The message names the row.
    - `to` is a [source](#sources): `selector`, `aggregation`, `period` and `as_of` work as in a join.
    """

    type: Literal["allocate"]
    arguments: AllocateArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        return (self.arguments.to,)

    @property
    def conditions(self) -> tuple[str, ...]:
        return (*super().conditions, *self.arguments.to.conditions)

    def bind(self, binding: Binding) -> AllocateStep | None:
        selector = binding.selector()
        amount = _bind_amount(self.arguments.amount, binding)
        scope = binding.scope()
        path = ("arguments", "to")
        if folded(TARGETS) in {folded(table.name) for table in scope.tables}:
            message = f"'{TARGETS}' is already the name of a table or lookup here, so it cannot name the targets"
            binding.report("DuplicateColumn", message, *path, hint="rename the table or lookup")
            return None
        rows = bind_joined_source(self.arguments.to, binding, *path, alias=TARGETS)
        scope = scope.with_open_table(TARGETS) if rows is None else scope.with_table(rows.scope_table(TARGETS))
        match = binding.condition(self.arguments.match, scope, "arguments", "match", named=False)
        driver = _bind_driver(self.arguments.driver, scope, binding)
        assigned = bind_assignments(self.arguments.set, scope, binding, "arguments", "set")
        for index, given in enumerate(self.arguments.set):
            if given.column == self.arguments.amount:
                message = f"column '{given.column}' gets the share of the amount"
                binding.report("DuplicateColumn", message, "arguments", "set", index, "column", hint="leave it out")
        after = binding.before
        for assignment in assigned:
            if assignment.column not in after.columns:
                after = after.with_column(assignment.column, assignment.type)
        binding.after = after
        if rows is None or amount is None or driver is None:
            return None
        valid = bind_validity(self.arguments.to, TARGETS, rows.table, scope, binding, *path)
        always = TypedLiteral(LiteralNode(value=True), BOOLEAN, value=True)
        return AllocateStep(
            self.seq,
            self.name,
            selector,
            binding.before,
            after,
            self.arguments.amount,
            driver,
            tuple(assigned),
            self.arguments.pool,
            has_match=match is not None,
            joins=(JoinedTable(TARGETS, rows, match or always, valid),),
        )


def _bind_amount(name: str, binding: Binding) -> ColumnType | None:
    type = binding.before.business.get(name)
    if type is None and not binding.before.open:
        hint = did_you_mean(name, binding.before.business) or "name a number column of the working dataset"
        binding.report("ColumnNotFound", f"there is no column '{name}'", "arguments", "amount", hint=hint)
    elif type is not None and not type.is_number and type.kind != "unknown":
        message = f"column '{name}' is {type}, and only numbers can be allocated"
        binding.report("TypeMismatch", message, "arguments", "amount", hint="name a decimal or integer column")
        return None
    return type


def _bind_driver(text: str, scope: Scope, binding: Binding) -> Typed | None:
    driver = binding.expression(text, scope, "arguments", "driver")
    if driver is None or driver.type in NUMBER:
        return driver if driver is None or driver.type != NULL else cast_to(driver, INTEGER)
    message = f"the driver has type {driver.type}, but must be a number"
    hint = "convert text with TO_DECIMAL(…)" if driver.type == STRING else "such as targets.heads"
    binding.report("TypeMismatch", message, "arguments", "driver", hint=hint)
    return None


@dataclass(frozen=True)
class AllocateStep(Step):
    """A checked allocation."""

    type: ClassVar[str] = "allocate"

    amount: str
    driver: Typed
    assignments: tuple[BoundAssignment, ...]
    pool: str
    has_match: bool

    @property
    def targets(self) -> JoinedTable:
        return self.joins[0]

    @property
    def unique_joins(self) -> tuple[JoinedTable, ...]:
        return ()

    @property
    def by_path(self) -> dict[str, BoundAssignment]:
        """The assignments by the paths of their expressions."""
        return by_path(self.assignments, "arguments.set")

    @property
    def expressions(self) -> Mapping[str, Typed]:
        match = {"arguments.match": self.targets.on} if self.has_match else {}
        valid = {"arguments.to.as_of": self.targets.valid} if self.targets.valid is not None else {}
        values = checked_values(self.by_path)
        return {**super().expressions, **match, **valid, "arguments.driver": self.driver, **values}

    @property
    def settings(self) -> Mapping[str, str]:
        return {**super().settings, "arguments.amount": self.amount, "arguments.pool": self.pool}

    @property
    def writes(self) -> Mapping[str, str | None]:
        return {DELETED: None, UPDATED_AT: None} if self.pool == "delete" else {}

    @property
    def adds(self) -> Mapping[str, str | None]:
        copied = [*self.after.business, *(name for name in _TAKEN_OVER if name in self.after.columns)]
        return dict.fromkeys(copied) | {one.column: path for path, one in self.by_path.items()}

    @property
    def keys(self) -> frozenset[str]:
        return super().keys | {ROW_ID, self.amount, *self._named}

    @property
    def _named(self) -> list[str]:
        """The columns that name a pool row in a failure."""
        return [name for name in self.before.natural_key if name in self.before.columns] or [ROW_ID]

    @property
    def columns_read(self) -> frozenset[str]:
        return super().columns_read | (self.adds.keys() & self.before.columns.keys())

    @property
    def per_expression(self) -> dict[str, Step]:
        from tallybook.operations.delete import DeleteStep

        selecting = DeleteStep(self.seq, self.name, self.selector, self.before, self.before)
        bare = replace(self, assignments=())
        values = {path: replace(self, assignments=(one,)) for path, one in self.by_path.items()}
        return dict.fromkeys(self.row_expressions, bare) | selecting.per_expression | self.source_checks | values

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        return assign_columns(rows, self, lookups_of(self), no_values, build)

    def added_segment(self, input: SourceTable, evaluator: Evaluator) -> Segment:
        new = new_segment(self.seq, input.dataset.id, input.table.name, evaluator.timestamp)
        return new.with_varying({name: self.after.columns[name] for name in self.adds}).with_nulls(self.after.columns)

    def add(self, rows: Rows | None, build: BuildContext) -> Rows:
        from pyspark.sql import functions as F

        from tallybook.rows.allocation import POOL, RANK
        from tallybook.rows.working import group_rows

        assert rows is not None, "an allocation reads working rows"
        chosen = filtered(rows, self, build)
        compiler = chosen.compiler(build.compiler)
        frame = chosen.frame.withColumn(POOL, chosen.column(ROW_ID))
        new = self._shares(frame, chosen, compiler, build)
        if self.pool == "reverse":
            reversal = self._values(chosen, {self.amount: -chosen.column(self.amount)})
            new = new.union(frame.select(*reversal, POOL, F.lit(0).alias(RANK)))
        keys = [POOL, RANK]
        segment = self.added_segment(build.input, build.evaluator)
        ids = {ROW_ID: build.ids.of_groups(self.seq, keys)}
        return group_rows(segment, new, ids, keys, build.live[self.seq], chosen.parts)

    def _shares(self, frame: DataFrame, chosen: Rows, compiler: Compiler, build: BuildContext) -> DataFrame:
        from pyspark.sql import functions as F

        from tallybook.expressions.compile import column_named
        from tallybook.rows.allocation import POOL, RANK, TARGET, Distribution, described

        key = self._target_key
        # Several targets may have one key, as those of several periods do. Then the columns that are read decide.
        theirs = {name: joined_name(TARGETS, name) for name in (*key, *self.columns_of(TARGETS))}
        named = [column_named(name).alias(physical) for name, physical in theirs.items()]
        targets = self.targets.rows.frame(build).select(*named, F.lit(True).alias(TARGET))
        matches = [compiler.column(condition) for condition in self.targets.conditions]
        pairs = frame.join(targets, matches[0] if len(matches) == 1 else matches[0] & matches[1], "left")
        distribution = Distribution(
            self.seq,
            chosen.column(self.amount),
            self.before.columns[self.amount],
            compiler.column(self.driver),
            self.driver.type,
            described({name: chosen.column(name) for name in self._named}),
            described({name: column_named(theirs[name]) for name in key}),
            [column_named(physical) for physical in theirs.values()],
        )
        values = self._values(chosen, {self.amount: distribution.share, **assigned_values(self.assignments, compiler)})
        return distribution.of(pairs).select(*values, POOL, RANK)

    @property
    def _target_key(self) -> list[str]:
        """The columns that name a target: the natural key of its dataset, or all of them."""
        rows = self.targets.rows
        key = [name for name in rows.table.dataset.natural_key_columns if name in rows.columns]
        return key if key and rows.grouping is None else list(rows.columns)

    def _values(self, rows: Rows, new: Mapping[str, Column]) -> list[Column]:
        """The columns of added rows: the new values, and those of the pool rows."""
        from pyspark.sql import functions as F

        from tallybook.rows.system import null

        def value(name: str) -> Column:
            if name in new:
                return new[name]
            if name == LABELS:
                return F.lit("")
            return rows.column(name) if name in self.before.columns else null(self.after.columns[name])

        return [value(name).alias(name) for name in self.adds]
