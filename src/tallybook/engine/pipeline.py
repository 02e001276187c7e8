"""Builds the Spark frames of a calculation, step by step. Nothing here starts a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.input import input_rows, other_rows
from tallybook.engine.plan import Calculation
from tallybook.engine.tables import Tables
from tallybook.expressions.compile import Compiler
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import BuildContext, Step
from tallybook.rows.ids import RowIds


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
