"""Executes a calculation. Runs, replays, scenarios and `apply_operations` all call it.

It owns the loop over the steps, the current step, the attribution of failures, interruption, and the release of cached
rows. A sink takes the rows of outputs; observers get the events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.checks import PlannedCheck, count_all, problem_of, result_of
from tallybook.engine.events import (
    CheckTested,
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
from tallybook.engine.keeper import Keeper, keeper_of
from tallybook.engine.keeping import Keep
from tallybook.engine.pipeline import Pipeline, Version, Working
from tallybook.engine.plan import Calculation
from tallybook.engine.preparing import preparing_joins
from tallybook.engine.tables import Tables
from tallybook.errors import Problem, ProblemError, RunError, fail
from tallybook.model.run import CheckResult, OutputResult
from tallybook.operations.base import Step
from tallybook.operations.flow import live_columns
from tallybook.operations.publication import Publication
from tallybook.rows.working import KeepRows
from tallybook.storage.failure import SPARK_ERRORS

Warn = Callable[[str], None]


class Sink:
    """Takes the rows that an execution produces. This base class drops them.

    A failure in one of its methods is attributed to the current step, like a failure of the step itself.
    """

    needs_working: bool = False
    """True if it takes the final working dataset."""
    needs_checks: bool = True
    """True if checks are computed."""
    warns_of_empty_input: ClassVar[bool] = False
    """True if an input without rows is worth a warning, and a job that looks for one."""
    starts_jobs: ClassVar[bool] = True
    """True if jobs may be started before anything is published, to prepare joins and to keep groups."""
    stops_at_failed_check: bool = True
    """True if a check that fails and must not ends the execution."""

    def prepare(self) -> None:
        """Checks what must hold before the first row is read."""

    def take_check(self, _result: CheckResult) -> None:
        """Takes the result of a check."""

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
    keeper = keeper or keeper_of(spark)
    keep_groups = keeper.keep if sink.starts_jobs else None
    pipeline = Pipeline(spark, calculation, tables, keeper.keep_table, keep_groups, needs_working=sink.needs_working)
    _Execution(pipeline, sink, tuple(observers), keeper).run()


def working_rows(
    spark: SparkSession, calculation: Calculation, tables: Tables, *, needs_checks: bool = True
) -> DataFrame:
    """Returns the final working dataset and publishes nothing. Spark computes its rows when they are used; only checks
    are computed at once."""
    sink = _WorkingRows(needs_checks=needs_checks)
    execute(spark, calculation, tables, sink, keeper=Keeper())
    assert sink.rows is not None
    return sink.rows


@dataclass
class _WorkingRows(Sink):
    starts_jobs: ClassVar[bool] = False
    needs_working: bool = True
    needs_checks: bool = True
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
    checks: list[PlannedCheck] = field(default_factory=list, init=False)
    """The checks that are not computed yet."""
    has_input: bool = field(default=False, init=False)
    """True if an output had rows that can only come from the input."""

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
                self._warn_of_empty_input()
                self.sink.finish(self._warn)
        finally:
            self.keeper.release()
        self._notify(Finished())

    def _steps(self, steps: Sequence[Step]) -> Working:
        prepares = self.sink.starts_jobs and self.pipeline.calculation.optimisations.prepare_joins
        with preparing_joins(self.pipeline) if prepares else nullcontext():
            working = self.pipeline.first()
        self._check_input()
        keeps = self.pipeline.calculation.keeps(
            self.pipeline.tables.is_small,
            self.pipeline.passes,
            self.pipeline.droppable,
            needs_working=self.sink.needs_working,
        )
        wanted = self.pipeline.calculation.last.columns if self.sink.needs_working else ()
        live = live_columns(steps, wanted, all_active=working[0].rows.segment.all_active)
        for index, step in enumerate(steps):
            begun = time.monotonic()
            self.current = step
            self._notify(StepStarted(step))
            here = [keep for keep in keeps if keep.step == index]
            working = self._keep(working, here, live[index])
            if step.publishes is not None:
                self._test()
                rows = self.pipeline.taken(step, working)
                result = self.sink.publish(step.publishes, rows, self._warn)
                self._notify(OutputWritten(step, result, time.monotonic() - begun))
                appended = any(earlier.appends is not None for earlier in steps[:index])
                self.has_input |= result is not None and bool(result.rows_written) and not appended
            if step.tests is not None and self.sink.needs_checks:
                self.checks.append(PlannedCheck(step, self.pipeline.taken(step, working), working))
            totals = next((keep for keep in here if keep.segment is None), None)
            working = self.pipeline.after(step, working, self._means(totals) if totals else None)
            if step.publishes is None:
                self._notify(StepPlanned(step))
        self._test()
        return working

    def _test(self) -> None:
        """Computes the checks since the last output. The first that fails and must not is the problem of the run."""
        planned, self.checks, current = self.checks, [], self.current
        failures: list[Problem] = []
        for check, result in self._results(planned):
            self._notify(CheckTested(check.step, result))
            self.sink.take_check(result)
            if result.passed:
                continue
            if result.on_failure == "warn":
                self._warn(f"check {result.seq} '{result.name}': {result.summary}: {result.shown_examples}")
            else:
                failures.append(problem_of(check.step, result))
        if failures and self.sink.stops_at_failed_check:
            raise RunError(failures[:1])
        self.current = current

    def _results(self, planned: Sequence[PlannedCheck]) -> list[tuple[PlannedCheck, CheckResult]]:
        """Counts all checks in one job. If it fails, counts them one by one, so that the failure has its step."""
        if not planned:
            return []
        try:
            counts = count_all(self.pipeline, planned) if len(planned) > 1 else []
        except SPARK_ERRORS:
            counts = []
        results = []
        for index, check in enumerate(planned):
            self.current = check.step
            (tested, failed) = counts[index] if counts else count_all(self.pipeline, [check])[0]
            results.append((check, result_of(check, tested, failed)))
        return results

    def _check_input(self) -> None:
        """Raises CheckFailed if the input has fewer rows for the period than the project needs."""
        needed = self.pipeline.calculation.min_rows
        if not needed or not self.sink.needs_checks:
            return
        count = self.pipeline.active_input().limit(needed).count()
        if count < needed:
            rows = f"{count:,} row{'' if count == 1 else 's'}"
            period = self.pipeline.calculation.context.period.identifier
            raise fail(
                "CheckFailed",
                f"the input {self.pipeline.calculation.input} has {rows} for {period}, but the project needs at least "
                f"{needed:,}",
                hint="add the missing rows, or change `input: {min_rows: …}` of the project",
                path="project.input.min_rows",
            )

    def _warn_of_empty_input(self) -> None:
        """Warns if the input has no rows for the period. A failure to find out does not fail the run."""
        if self.has_input or not self.sink.warns_of_empty_input:
            return
        calculation = self.pipeline.calculation
        with suppress(*SPARK_ERRORS):
            if self.pipeline.active_input().isEmpty():
                self._warn(f"the input {calculation.input} has no rows for {calculation.context.period.identifier}")

    def _keep(self, working: Working, keeps: Sequence[Keep], live: frozenset[str]) -> Working:
        kept = list(working)
        for keep in keeps:
            if keep.segment is not None:
                rows = kept[keep.segment].rows.narrowed(live)
                kept[keep.segment] = Version.of(rows.kept(self._means(keep)))
        return tuple(kept)

    def _means(self, keep: Keep) -> KeepRows:
        return self.keeper.cut if keep.is_cut else self.keeper.keep

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
