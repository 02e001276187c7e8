"""One loop that runs a plan. Operations describe; this is where Spark executes.

The working dataset is computed once however many outputs there are: it is kept (in memory, spilling to disk) where
it forks, and let go after its last use. Long chains are cut, because Spark's cost of a plan grows faster than the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.context import RunContext
from tallybook.engine.input import input_rows, other_rows
from tallybook.engine.tables import Tables
from tallybook.expressions.compile import Compiler
from tallybook.model.columns import DELETED, UPDATED_AT, ColumnType
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows.ids import RowIds
from tallybook.rows.system import select_columns

CUT_EVERY = 20
"""Operations after which a chain is cut."""

Write = Callable[[Publication, DataFrame], None]
"""Writes the rows of an output."""


class Listener:
    """What happens while a pipeline runs; does nothing by itself."""

    def started(self, step: Step) -> None:
        """An operation is being built, or an output written."""

    def finished(self, step: Step, seconds: float) -> None:
        """It is done. For all but outputs that means planned: rows are computed when an output needs them."""


@dataclass
class Pipeline:
    """Steps over one working dataset."""

    spark: SparkSession
    input: SourceTable
    schema: WorkingSchema
    steps: Sequence[Step]
    context: RunContext
    tables: Tables
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def build_context(self) -> BuildContext:
        """What steps build with: the run's constants as columns, and each other table loaded once."""
        ids = RowIds(self.context.epoch_ms, {0: 0} | {step.seq: rank for rank, step in enumerate(self.steps, 1)})
        load = cache(lambda source: other_rows(source, self.tables, self.context, ids))
        compiler = Compiler(self.context.timestamp, self.context.period.identifier)
        return BuildContext(compiler, self.context.timestamp, ids, load, self.input)

    def first(self, build: BuildContext) -> tuple[DataFrame, BuildContext]:
        """The working dataset before any operation, and what is known of all its rows."""
        frame, came = input_rows(self.input, self.schema, self.tables, self.context, build.ids)
        return frame, replace(build, all_active=DELETED not in came, all_stamped=UPDATED_AT not in came)

    def after(self, step: Step, frame: DataFrame, build: BuildContext) -> tuple[DataFrame, BuildContext]:
        """The working dataset after a step, and what is known of all its rows then."""
        known = replace(build, all_active=build.all_active and not step.deletes_rows)
        return step.apply(frame, build), known

    def run(self, write: Write, listener: Listener | None = None) -> DataFrame:
        """Runs every step in order, writing outputs as they come; returns the final working dataset."""
        listener = listener or Listener()
        frame, build = self.first(self.build_context)
        forked = False
        depth = 0
        for index, step in enumerate(self.steps):
            begun = time.monotonic()
            listener.started(step)
            if self.keeps(index, forked):
                frame, forked, depth = self.keep(frame, step.before.columns), False, 0
            elif depth >= CUT_EVERY:
                frame, forked, depth = frame.localCheckpoint(eager=False), False, 0
            if step.publishes is not None:
                write(step.publishes, step.rows_to_publish(frame, build))
            else:
                frame, build = self.after(step, frame, build)
                depth += 1
                forked = forked or step.forks
            listener.finished(step, time.monotonic() - begun)
        return select_columns(frame, self.last.columns)

    @property
    def last(self) -> WorkingSchema:
        """The schema after the last step."""
        return self.steps[-1].after if self.steps else self.schema

    def keeps(self, index: int, forked: bool) -> bool:
        """Whether the frame before a step is kept: it is written and used again, or summarised once more."""
        step = self.steps[index]
        if step.publishes is not None:
            return any(later.publishes is not None for later in self.steps[index + 1 :])
        return forked and step.forks

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """The same rows, computed once however often they are used."""
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept

    def release(self) -> None:
        """Lets go of everything kept."""
        while self._kept:
            self._kept.pop().unpersist()
