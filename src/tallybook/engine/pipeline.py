"""Builds the Spark frames of a calculation: loads rows with the temporal filter and system columns, then applies each
step. Nothing here starts a job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.keeping import LargeJoin, large_joins
from tallybook.engine.plan import Calculation, RunContext
from tallybook.engine.tables import Tables
from tallybook.expressions.compile import Compiler
from tallybook.model.columns import (
    DELETED,
    INTEGER,
    PERIOD,
    RESERVED,
    ROW_ID,
    SYSTEM_COLUMNS,
    VALIDITY_COLUMNS,
    ColumnType,
)
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.flow import columns_used, live_columns, narrowed_changes
from tallybook.operations.one_pass import summaries
from tallybook.operations.schema import SourceTable
from tallybook.rows import sql
from tallybook.rows.ids import POSITION, RowIds
from tallybook.rows.joins import KeyedTables
from tallybook.rows.segments import Segment
from tallybook.rows.system import column_values, input_system_columns, is_active, rows_of_period, select_typed
from tallybook.rows.working import KeepRows, Rows, loaded_rows, union


@dataclass(frozen=True)
class Version:
    """The rows of a segment between two steps, and how they came about since they were read, added or kept."""

    rows: Rows
    start: Rows
    changes: tuple[Step, ...] = ()
    """The steps that made `rows` of the rows at the start."""
    large: frozenset[LargeJoin] = frozenset()
    """Their joins to large tables."""

    @classmethod
    def of(cls, rows: Rows) -> Version:
        """Returns rows that are not made again."""
        return cls(rows, rows)


Working = tuple[Version, ...]
"""The working dataset: the rows of each segment, in the order in which they came in."""


@dataclass(frozen=True)
class Pipeline:
    """A calculation over the rows of its tables."""

    spark: SparkSession
    calculation: Calculation
    tables: Tables
    keep_table: Callable[[DataFrame], DataFrame] | None = None
    """Lets Spark compute a joined table once; None if it is computed again for each use."""
    keep_groups: KeepRows | None = None
    """Keeps the groups of aggregates that are computed in one pass; None if each aggregate is computed alone."""
    needs_working: bool = True
    """True if all columns of the final working dataset are needed."""
    names_keys: bool = False
    """True if a join that is not unique shall fail with the key."""

    @cached_property
    def live(self) -> tuple[frozenset[str], ...]:
        """The columns that are needed before each step, and after the last, whatever the data."""
        return live_columns(self.calculation.steps, self.calculation.last.columns if self.needs_working else ())

    @cached_property
    def build(self) -> BuildContext:
        """What steps build frames with: the constants of the run, and a loader that loads each table once."""
        context, steps = self.calculation.context, self.calculation.steps
        ids = RowIds(context.epoch_ms, {0: 0} | {step.seq: rank for rank, step in enumerate(steps, 1)})
        used = columns_used(steps)
        load = cache(lambda source: other_rows(source, self.tables, context, ids, used.get(source)))
        return BuildContext(
            compiler=Compiler(context.timestamp, context.run_period, parameters=context.parameters),
            evaluator=self.calculation.evaluator,
            ids=ids,
            load=load,
            is_small=self.tables.is_small,
            input=self.calculation.input,
            keyed=KeyedTables(self.keep_table),
            kept_tables={(kept.seq, kept.alias) for kept in self.calculation.kept_tables(self.tables.is_small)},
            shared=self.calculation.shared,
            names_keys=self.names_keys,
            live={step.seq: live for step, live in zip(steps, self.live[1:], strict=True)},
        )

    @cached_property
    def passes(self) -> Mapping[int, Sequence[Step]]:
        """The aggregates that are computed in one pass with an aggregate, itself included, by its seq."""
        if self.keep_groups is None:
            return {}
        steps = {step.seq: step for step in self.calculation.steps}
        passes = self.calculation.passes(needs_working=self.needs_working)
        return {seq: [steps[one] for one in seqs] for seqs in passes for seq in seqs}

    def first(self) -> Working:
        """Returns the working dataset before any operation."""
        context, source = self.calculation.context, self.calculation.input
        frame = _current(source, self.tables, context)
        segment = self.calculation.input_segment(frame.columns, self.tables.periods(source))
        values = _system(frame, source, context, self.build.ids)
        own = {name: values[name] for name in (*SYSTEM_COLUMNS, *VALIDITY_COLUMNS) if name in segment.varying}
        return (Version.of(loaded_rows(segment, frame, own, self.live[0] | {DELETED})),)

    def active_input(self) -> DataFrame:
        """Returns the input rows of the period that are not deleted, without their columns."""
        rows = self.first()[0].rows
        active = rows.frame if rows.segment.all_active else rows.frame.filter(is_active())
        return active.selectExpr("1")

    def after(self, step: Step, working: Working, keep_totals: KeepRows | None = None) -> Working:
        """Returns the working dataset after a step. `keep_totals` keeps the groups of its aggregates (`OVER`)."""
        build = self.build
        if step.overs:
            totals = step.totals(self.read(step, working), build)
            build = replace(build, totals=tuple(one.kept(keep_totals) for one in totals) if keep_totals else totals)
        changed = tuple(self._version_after(step, version, build) for version in working)
        if not step.adds_rows:
            return changed
        if step.seq in self.passes and step.seq not in self.build.summaries:
            self.build.summaries.update(self._summaries(self.passes[step.seq], working))
        added = step.add(None if step.appends is not None else self.read(step, working), self.build)
        return (*changed, Version.of(added))

    def _summaries(self, steps: Sequence[Step], working: Working) -> dict[int, DataFrame]:
        """Returns the groups of the steps of a pass. What is added between them is NULL in their rows."""
        columns = {name: step.before.columns[name] for step in steps for name in step.columns_read}
        assert self.keep_groups is not None, "there are passes only if groups are kept"
        rows = self._selected(steps[:1], working, columns, steps[-1].before.columns)
        return summaries(steps, rows, self.build, self.keep_groups)

    def _version_after(self, step: Step, version: Version, build: BuildContext) -> Version:
        rows = self._changed(step, version.rows, build)
        if not self._changes(step, version.rows.segment):
            return replace(version, rows=rows)
        if step.overs:
            return Version.of(rows)
        large = version.large | large_joins([step], self.tables.is_small)
        return replace(version, rows=rows, changes=(*version.changes, step), large=large)

    def _changes(self, step: Step, segment: Segment) -> bool:
        return bool(step.writes) and step.selects(segment, self.build.evaluator) is not False

    def _changed(self, step: Step, rows: Rows, build: BuildContext) -> Rows:
        if self._changes(step, rows.segment):
            changed = step.change(rows, build)
            return changed if self.calculation.optimisations.fuse_updates else changed.settled()
        return replace(rows, segment=step.segment_after(rows.segment, self.build.evaluator))

    def read(self, step: Step, working: Working) -> Rows:
        """Returns the rows of all segments that a step may select. If it selects none, a segment stands for all: the
        filter of the step leaves none of its rows."""
        return self._selected([step], working, {name: step.before.columns[name] for name in step.columns_read})

    def _selected(
        self,
        steps: Sequence[Step],
        working: Working,
        columns: Mapping[str, ColumnType],
        known: Mapping[str, ColumnType] = MappingProxyType({}),
    ) -> Rows:
        """Returns the rows that any of the steps may select, with columns. `known` are columns that are NULL in rows
        that do not have them."""
        evaluator = self.build.evaluator
        selected = [
            version
            for version in working
            if any(step.selects(version.rows.segment, evaluator) is not False for step in steps)
        ]
        rows = [self._with_columns(version, columns, steps[0]) for version in selected or working[:1]]
        return union([_with_nulls(one, known) for one in rows], columns)

    def _with_columns(self, version: Version, columns: Collection[str], use: Step) -> Rows:
        """Returns rows that have these columns. They are made again, from the start, if that saves a join to a large
        table whose columns are not needed."""
        if not version.large:
            return version.rows
        rows = version.start
        changes = narrowed_changes(version.changes, columns, self.droppable, all_active=rows.segment.all_active)
        if version.large <= large_joins([*changes, use], self.tables.is_small):
            return version.rows
        for step in changes:
            rows = self._changed(step, _with_nulls(rows, step.before.columns), self.build)
        return _with_nulls(rows, use.before.columns)

    def droppable(self, step: Step) -> Collection[str]:
        """Returns the tables that a step need not join if nothing reads them."""
        return self._droppable[step.seq] if self.calculation.optimisations.drop_joins else ()

    @cached_property
    def _droppable(self) -> Mapping[int, Collection[str]]:
        """Known once the joins are prepared."""
        return {step.seq: step.droppable(self.build.keyed.is_unique) for step in self.calculation.steps}

    def taken(self, step: Step, working: Working) -> DataFrame:
        """Returns the rows that a step publishes or tests."""
        rows = self.read(step, working)
        return step.rows_to_publish(rows, self.build) if step.publishes else step.rows_to_test(rows, self.build)

    def verdicts(self, steps: Sequence[Step], working: Working) -> DataFrame:
        """Returns a column for each of several tests of the same rows; see `Step.verdict`."""
        columns = {name: step.before.columns[name] for step in steps for name in step.columns_read}
        rows = self._selected(steps, working, columns)
        return rows.frame.select(
            *(step.verdict(rows, self.build).alias(f"verdict{index}") for index, step in enumerate(steps))
        )

    def frame(self, working: Working, columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns columns of all working rows."""
        return union([version.rows for version in working], columns).select({name: name for name in columns})


def _with_nulls(rows: Rows, columns: Mapping[str, ColumnType]) -> Rows:
    """Returns the rows with every column of a schema: those that they do not have yet are NULL."""
    return replace(rows, segment=rows.segment.with_nulls(columns))


def other_rows(
    source: SourceTable, tables: Tables, context: RunContext, ids: RowIds, used: Collection[str] | None = None
) -> DataFrame:
    """Returns the rows of a joined, looked-up or appended table that are not deleted; with position and id if they are
    numbered. System columns are made only if they are among those `used`; None stands for all."""
    frame = _current(source, tables, context)
    as_read = {*VALIDITY_COLUMNS, *({PERIOD} if source.table.temporal_mode == "period" else ())}
    if used is not None and POSITION not in frame.columns and RESERVED.intersection(used) <= as_read:
        return frame.filter(f"NOT coalesce({DELETED}, false)") if DELETED in frame.columns else frame
    business = source.table.business_types
    values = column_values(business) | _system(frame, source, context, ids)
    columns = {**business, **source.table.system_types}
    if POSITION in frame.columns:
        columns[POSITION] = INTEGER
        values[POSITION] = sql.name(POSITION)
    else:
        del columns[ROW_ID]
    rows = select_typed(frame, columns, values)
    return rows.filter(is_active()) if DELETED in frame.columns else rows


def _current(source: SourceTable, tables: Tables, context: RunContext) -> DataFrame:
    return rows_of_period(tables.rows(source), source.table, tables.periods(source), context.as_of_for(source))


def _system(frame: DataFrame, source: SourceTable, context: RunContext, ids: RowIds) -> dict[str, str]:
    return input_system_columns(
        frame.columns,
        ids.of_rows(0),
        source.dataset.id,
        source.table.name,
        context.period.identifier,
        sql.timestamp(context.timestamp, sql.name(POSITION) if POSITION in frame.columns else None),
    )
