"""Executes a calculation. Runs, replays, scenarios and `apply_operations` all call it.

It owns the loop over the steps, the current step, the attribution of failures, interruption, and the release of cached
rows. A sink takes the rows of outputs; observers get the events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.events import (
    Event,
    Failed,
    Finished,
    Observer,
    OutputWritten,
    RunStarted,
    StepPlanned,
    StepStarted,
    Warned,
)
from tallybook.engine.failures import explained
from tallybook.engine.interrupt import interruptible
from tallybook.engine.keeper import Keeper, MemoryKeeper
from tallybook.engine.keeping import Keep
from tallybook.engine.pipeline import Pipeline, Working
from tallybook.engine.plan import Calculation
from tallybook.engine.tables import Tables
from tallybook.errors import Problem, ProblemError, RunError
from tallybook.model.run import OutputResult
from tallybook.operations.base import Step
from tallybook.operations.flow import live_columns
from tallybook.operations.publication import Publication

Warn = Callable[[str], None]


class Sink:
    """Takes the rows that an execution produces. This base class drops them.

    A failure in one of its methods is attributed to the current step, like a failure of the step itself.
    """

    needs_working: bool = False
    """True if it takes the final working dataset."""

    def prepare(self) -> None:
        """Checks what must hold before the first row is read."""

    def publish(self, _output: Publication, _rows: DataFrame, _warn: Warn) -> OutputResult | None:
        """Takes the rows of an output."""
        return None

    def take_working(self, _working: DataFrame) -> None:
        """Takes the final working dataset, when every output is published. Spark computes the rows when they are
        used."""

    def finish(self, _warn: Warn) -> None:
        """Ends the execution, when every output is published."""


def execute(
    spark: SparkSession,
    calculation: Calculation,
    tables: Tables,
    sink: Sink,
    observers: Sequence[Observer] = (),
    keeper: Keeper | None = None,
) -> None:
    """Executes every step in order and gives the sink the rows of the outputs. A failure is a RunError that names the
    step and the expression that failed."""
    pipeline = Pipeline(spark, calculation, tables)
    _Execution(pipeline, sink, tuple(observers), keeper or MemoryKeeper()).run()


def working_rows(spark: SparkSession, calculation: Calculation, tables: Tables) -> DataFrame:
    """Returns the final working dataset and publishes nothing. Spark computes its rows when they are used."""
    sink = _WorkingRows()
    execute(spark, calculation, tables, sink, keeper=Keeper())
    assert sink.rows is not None
    return sink.rows


@dataclass
class _WorkingRows(Sink):
    needs_working: bool = True
    rows: DataFrame | None = None

    def take_working(self, working: DataFrame) -> None:
        self.rows = working


@dataclass
class _Execution:
    pipeline: Pipeline
    sink: Sink
    observers: tuple[Observer, ...]
    keeper: Keeper
    current: Step | None = field(default=None, init=False)

    def run(self) -> None:
        steps = self.pipeline.calculation.steps
        self._notify(RunStarted(steps))
        try:
            with (
                self._attributing(),
                explained(self.pipeline, lambda: self.current),
                interruptible(self.pipeline.spark),
            ):
                self.sink.prepare()
                working = self._steps(steps)
                if self.sink.needs_working:
                    self.sink.take_working(self.pipeline.frame(working, self.pipeline.calculation.last.columns))
                self.sink.finish(self._warn)
        finally:
            self.keeper.release()
        self._notify(Finished())

    def _steps(self, steps: Sequence[Step]) -> Working:
        working = self.pipeline.first()
        keeps = self.pipeline.calculation.keeps(self.pipeline.tables.is_small, needs_working=self.sink.needs_working)
        wanted = self.pipeline.calculation.last.columns if self.sink.needs_working else ()
        live = live_columns(steps, wanted, all_active=working[0].segment.all_active)
        for index, step in enumerate(steps):
            begun = time.monotonic()
            self.current = step
            self._notify(StepStarted(step))
            working = self._keep(working, [keep for keep in keeps if keep.step == index], live[index])
            if step.publishes is not None:
                rows = self.pipeline.to_publish(step, working)
                result = self.sink.publish(step.publishes, rows, self._warn)
                self._notify(OutputWritten(step, result, time.monotonic() - begun))
            working = self.pipeline.after(step, working)
            if step.publishes is None:
                self._notify(StepPlanned(step))
        return working

    def _keep(self, working: Working, keeps: Sequence[Keep], live: frozenset[str]) -> Working:
        kept = list(working)
        for keep in keeps:
            rows = kept[keep.segment].narrowed(live)
            means = self.keeper.cut if keep.is_cut else self.keeper.keep
            kept[keep.segment] = rows.kept(means)
        return tuple(kept)

    @contextmanager
    def _attributing(self) -> Iterator[None]:
        """Attributes problems to a step, and notifies the observers of any error."""
        try:
            yield
        except ProblemError as error:
            step, problems = self._attributed(error.problems)
            self._notify(Failed(step, problems))
            raise RunError(problems) from error
        except BaseException:
            self._notify(Failed(self.current))
            raise

    def _attributed(self, problems: Sequence[Problem]) -> tuple[Step | None, tuple[Problem, ...]]:
        """Returns the step that the problems name, else the current one, and the problems attributed to it."""
        steps = self.pipeline.calculation.steps
        step = next((step for step in steps if step.seq == problems[0].seq), self.current)
        return step, tuple(problems if step is None else map(step.attribute, problems))

    def _warn(self, message: str) -> None:
        self._notify(Warned(message))

    def _notify(self, event: Event) -> None:
        for observer in self.observers:
            observer(event)
