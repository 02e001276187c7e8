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

from tallybook.engine.facts import RunFacts
from tallybook.engine.input import input_rows, other_rows
from tallybook.engine.tables import Tables
from tallybook.expressions.compile import Compiler
from tallybook.model.columns import DELETED, UPDATED_AT, ColumnType
from tallybook.operations.aggregate import AggregateStep
from tallybook.operations.base import Applying, Step
from tallybook.operations.delete import DeleteStep
from tallybook.operations.output import OutputStep
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows.ids import RowIds
from tallybook.rows.system import only

CUT_EVERY = 20
"""Operations after which a chain is cut."""

Write = Callable[[OutputStep, DataFrame], None]
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
    facts: RunFacts
    tables: Tables
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def applying(self) -> Applying:
        """What steps build with: the run's constants as columns, and each other table loaded once."""
        ids = RowIds(self.facts.epoch_ms, {0: 0} | {step.seq: rank for rank, step in enumerate(self.steps, 1)})
        load = cache(lambda source: other_rows(source, self.tables, self.facts, ids))
        compiler = Compiler(self.facts.timestamp, self.facts.period.identifier)
        return Applying(compiler, self.facts.timestamp, ids, load, self.input)

    def first(self, applying: Applying) -> tuple[DataFrame, Applying]:
        """The working dataset before any operation, and what is known of all its rows."""
        frame, came = input_rows(self.input, self.schema, self.tables, self.facts, applying.ids)
        return frame, replace(applying, all_active=DELETED not in came, all_stamped=UPDATED_AT not in came)

    def after(self, step: Step, frame: DataFrame, applying: Applying) -> tuple[DataFrame, Applying]:
        """The working dataset after a step, and what is known of all its rows then."""
        known = replace(applying, all_active=applying.all_active and not isinstance(step, DeleteStep))
        return step.apply(frame, applying), known

    def run(self, write: Write, listener: Listener | None = None) -> DataFrame:
        """Runs every step in order, writing outputs as they come; returns the final working dataset."""
        listener = listener or Listener()
        frame, applying = self.first(self.applying)
        forked = False
        depth = 0
        for index, step in enumerate(self.steps):
            begun = time.monotonic()
            listener.started(step)
            if self.keeps(index, forked):
                frame, forked, depth = self.keep(frame, step.before.columns), False, 0
            elif depth >= CUT_EVERY:
                frame, forked, depth = frame.localCheckpoint(eager=False), False, 0
            if isinstance(step, OutputStep):
                write(step, step.projected(frame, applying))
            else:
                frame, applying = self.after(step, frame, applying)
                depth += 1
                forked = forked or isinstance(step, AggregateStep)
            listener.finished(step, time.monotonic() - begun)
        return only(frame, self.last.columns)

    @property
    def last(self) -> WorkingSchema:
        """The schema after the last step."""
        return self.steps[-1].after if self.steps else self.schema

    def keeps(self, index: int, forked: bool) -> bool:
        """Whether the frame before a step is kept: it is written and used again, or summarised once more."""
        step = self.steps[index]
        if isinstance(step, OutputStep):
            return any(isinstance(later, OutputStep) for later in self.steps[index + 1 :])
        return forked and isinstance(step, AggregateStep)

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """The same rows, computed once however often they are used."""
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept

    def release(self) -> None:
        """Lets go of everything kept."""
        while self._kept:
            self._kept.pop().unpersist()
