"""The one core that executes a calculation. Runs, replays, scenarios and `apply_operations` call it.

It owns the loop over the steps, the current step, the blame for a failure, interruption, and the release of what was
kept. A sink takes the rows that come out; observers hear what happens.
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
from tallybook.errors import Problem, ProblemError, RunError, TallybookError
from tallybook.model.run import OutputResult
from tallybook.operations.base import Step
from tallybook.operations.publication import Publication
from tallybook.rows.system import select_columns
from tallybook.storage.failure import SPARK_ERRORS, reason

CUT_EVERY = 20
"""Steps after which a chain is cut, because Spark's cost of a plan grows faster than the plan."""

Warn = Callable[[str], None]


class Sink:
    """Takes the rows that come out of an execution; drops them by itself.

    A failure in one of its methods is blamed on the current step, like a failure of the step's own.
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
    """Executes every step in order and publishes outputs as they come; returns the final working dataset.

    The rows of that dataset are computed when somebody uses them. A failure comes out as the RunError that names the
    step and the expression to blame.
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
        self._tell(RunStarted(steps))
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
        self._tell(Finished())
        return working

    def _steps(self, steps: Sequence[Step]) -> DataFrame:
        frame, build = self.pipeline.first(self.pipeline.build_context)
        forked, depth = False, 0
        for index, step in enumerate(steps):
            begun = time.monotonic()
            self.current = step
            self._tell(StepStarted(step))
            if self.keeping.is_due(steps, index, forked=forked):
                frame, forked, depth = self.keeping.keep(frame, step.before.columns), False, 0
            elif depth >= CUT_EVERY:
                frame, forked, depth = frame.localCheckpoint(eager=False), False, 0
            if step.publishes is not None:
                result = self.sink.publish(step.publishes, step.rows_to_publish(frame, build), self._warn)
                self._tell(OutputWritten(step, result, time.monotonic() - begun))
            else:
                frame, build = self.pipeline.after(step, frame, build)
                forked, depth = forked or step.forks, depth + 1
                self._tell(StepPlanned(step))
        return select_columns(frame, self.pipeline.calculation.last.columns)

    @contextmanager
    def _attributing(self) -> Iterator[None]:
        """Attributes what goes wrong to a step, and tells the observers."""
        try:
            yield
        except ProblemError as error:
            step, problems = self._attributed(error.problems)
            self._tell(Failed(step, problems))
            raise RunError(problems) from error
        except TallybookError:
            self._tell(Failed(self.current))
            raise
        except Exception as error:
            said = reason(error) if isinstance(error, SPARK_ERRORS) else error
            step, problems = self._attributed([Problem("InternalError", f"{type(error).__name__}: {said}")])
            self._tell(Failed(step, problems))
            raise RunError(problems) from error
        except BaseException:
            self._tell(Failed(self.current))
            raise

    def _attributed(self, problems: Sequence[Problem]) -> tuple[Step | None, tuple[Problem, ...]]:
        """Problems with the step they belong to: the one they name, else the current one."""
        steps = self.pipeline.calculation.steps
        step = next((step for step in steps if step.seq == problems[0].seq), self.current)
        return step, tuple(problems if step is None else map(step.attribute, problems))

    def _warn(self, message: str) -> None:
        self._tell(Warned(message))

    def _tell(self, event: Event) -> None:
        for observer in self.observers:
            observer(event)
