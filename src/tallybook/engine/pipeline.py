"""Builds the Spark frames of a calculation: loads rows with the temporal filter and system columns, then applies each
step. Nothing here starts a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.plan import Calculation, RunContext
from tallybook.engine.tables import Tables
from tallybook.expressions.compile import Compiler
from tallybook.model.columns import DELETED, INTEGER, ROW_ID, UPDATED_AT
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows import sql
from tallybook.rows.ids import POSITION, RowIds
from tallybook.rows.system import column_values, input_system_columns, is_active, rows_of_period, select_typed


@dataclass(frozen=True)
class Pipeline:
    """A calculation over the rows of its tables."""

    spark: SparkSession
    calculation: Calculation
    tables: Tables

    @property
    def build_context(self) -> BuildContext:
        """What steps build frames with: the constants of the run, and a loader that loads each table once."""
        context, steps = self.calculation.context, self.calculation.steps
        ids = RowIds(context.epoch_ms, {0: 0} | {step.seq: rank for rank, step in enumerate(steps, 1)})
        load = cache(lambda source: other_rows(source, self.tables, context, ids))
        compiler = Compiler(context.timestamp, context.period.identifier)
        return BuildContext(compiler, context.timestamp, ids, load, self.calculation.input)

    def first(self, build: BuildContext) -> tuple[DataFrame, BuildContext]:
        """Returns the working dataset before any operation, and a build context that says what holds for all its
        rows."""
        calculation = self.calculation
        frame, given = input_rows(calculation.input, calculation.schema, self.tables, calculation.context, build.ids)
        return frame, replace(build, all_active=DELETED not in given, all_stamped=UPDATED_AT not in given)

    def after(self, step: Step, frame: DataFrame, build: BuildContext) -> tuple[DataFrame, BuildContext]:
        """Returns the working dataset after a step, and a build context that says what holds for all its rows."""
        next_build = replace(build, all_active=build.all_active and not step.deletes_rows)
        return step.apply(frame, build), next_build


def input_rows(
    source: SourceTable, schema: WorkingSchema, tables: Tables, context: RunContext, ids: RowIds
) -> tuple[DataFrame, frozenset[str]]:
    """Returns the working dataset before the first operation, with deleted rows, and the columns of the data."""
    frame = _current(source, tables, context)
    values = column_values(schema.business) | _system(frame, source, context, ids)
    return select_typed(frame, schema.columns, values), frozenset(frame.columns)


def other_rows(source: SourceTable, tables: Tables, context: RunContext, ids: RowIds) -> DataFrame:
    """Returns the rows of a joined, looked-up or appended table that are not deleted; with position and id if they are
    numbered."""
    frame = _current(source, tables, context)
    business = source.table.business_types
    values = column_values(business) | _system(frame, source, context, ids)
    columns = {**business, **source.table.system_types}
    if POSITION in frame.columns:
        columns[POSITION] = INTEGER
        values[POSITION] = sql.name(POSITION)
    else:
        del columns[ROW_ID]
    rows = select_typed(frame, columns, values)
    rows = rows.filter(is_active()) if DELETED in frame.columns else rows
    return rows.coalesce(1) if tables.is_small(source) else rows


def _current(source: SourceTable, tables: Tables, context: RunContext) -> DataFrame:
    return rows_of_period(tables.rows(source), source.table, tables.periods(source), context.as_of)


def _system(frame: DataFrame, source: SourceTable, context: RunContext, ids: RowIds) -> dict[str, str]:
    return input_system_columns(
        frame.columns,
        ids.of_rows(0),
        source.dataset.id,
        source.table.name,
        context.period.identifier,
        sql.timestamp(context.timestamp, sql.name(POSITION) if POSITION in frame.columns else None),
    )
