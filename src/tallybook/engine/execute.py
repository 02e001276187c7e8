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
from tallybook.engine.keeping import Keeping, KeptInMemory
from tallybook.engine.pipeline import Pipeline
from tallybook.engine.plan import Calculation
from tallybook.engine.tables import Tables
from tallybook.errors import Problem, ProblemError, RunError
from tallybook.model.run import OutputResult
from tallybook.operations.base import Step
from tallybook.operations.publication import Publication
from tallybook.rows.system import select_columns

CUT_EVERY = 20
"""The number of steps after which the Spark plan is cut: the cost of planning grows faster than the plan."""

Warn = Callable[[str], None]


class Sink:
    """Takes the rows that an execution produces. This base class drops them.

    A failure in one of its methods is attributed to the current step, like a failure of the step itself.
    """

    def prepare(self) -> None:
        """Checks what must hold before the first row is read."""

    def publish(self, _output: Publication, _rows: DataFrame, _warn: Warn) -> OutputResult | None:
        """Takes the rows of an output."""
        return None

    def finish(self, _working: DataFrame, _warn: Warn) -> None:
        """Takes the final working dataset, when every output is published."""


def execute(
    spark: SparkSession,
    calculation: Calculation,
    tables: Tables,
    sink: Sink,
    observers: Sequence[Observer] = (),
    keeping: Keeping | None = None,
) -> DataFrame:
    """Executes every step in order, publishes the outputs, and returns the final working dataset.

    Spark computes the rows of that dataset when they are used. A failure is a RunError that names the step and the
    expression that failed.
    """
    pipeline = Pipeline(spark, calculation, tables)
    return _Execution(pipeline, sink, tuple(observers), keeping or KeptInMemory()).run()


@dataclass
class _Execution:
    pipeline: Pipeline
    sink: Sink
    observers: tuple[Observer, ...]
    keeping: Keeping
    current: Step | None = field(default=None, init=False)

    def run(self) -> DataFrame:
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
                self.sink.finish(working, self._warn)
        finally:
            self.keeping.release()
        self._notify(Finished())
        return working

    def _steps(self, steps: Sequence[Step]) -> DataFrame:
        frame, build = self.pipeline.first(self.pipeline.build_context)
        forked, depth = False, 0
        for index, step in enumerate(steps):
            begun = time.monotonic()
            self.current = step
            self._notify(StepStarted(step))
            if self.keeping.is_due(steps, index, forked=forked):
                frame, forked, depth = self.keeping.keep(frame, step.before.columns), False, 0
            elif depth >= CUT_EVERY:
                frame, forked, depth = frame.localCheckpoint(eager=False), False, 0
            if step.publishes is not None:
                result = self.sink.publish(step.publishes, step.rows_to_publish(frame, build), self._warn)
                self._notify(OutputWritten(step, result, time.monotonic() - begun))
            else:
                frame, build = self.pipeline.after(step, frame, build)
                forked, depth = forked or step.forks, depth + 1
                self._notify(StepPlanned(step))
        return select_columns(frame, self.pipeline.calculation.last.columns)

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
