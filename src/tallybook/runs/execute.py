"""Executes a plan under the eyes of the store: outputs written once, operations noted, failures told and kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tallybook.engine.failures import explained
from tallybook.engine.interrupt import interruptible
from tallybook.engine.pipeline import Listener, Pipeline
from tallybook.engine.plan import Plan
from tallybook.engine.session import log_file
from tallybook.engine.tables import LocatedTables
from tallybook.errors import Problem, RunError, StoreError, TallybookError
from tallybook.model.columns import PERIOD, VALID_FROM
from tallybook.model.dataset import Dataset
from tallybook.model.location import Location
from tallybook.model.period import Calendar
from tallybook.model.run import OperationResult, OutputResult, Run
from tallybook.operations.base import Step
from tallybook.operations.publication import Publication
from tallybook.project.dataset_versions import registered_dataset
from tallybook.project.recorded import body_of
from tallybook.runs.destinations import check_catalog_tables
from tallybook.runs.inputs import PlannedInputs
from tallybook.runs.locations import location_to_json
from tallybook.runs.outputs import read_output, write_mode
from tallybook.runs.run_outcome import recording_outcome
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.guard import Guard
from tallybook.storage.periods import rows_without_period
from tallybook.storage.write import write
from tallybook.store.heartbeat import beating
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOUND_BY = {"period": PERIOD, "bitemporal": VALID_FROM}
"""The column a run finds the rows of a table by."""


@dataclass
class Execution(Listener):
    """One attempt at a run."""

    store: Store
    spark: SparkSession
    run: Run
    plan: Plan
    calendar: Calendar
    rivals: Sequence[str] = ()
    """Other runs that began to append the same rows and may not be dead."""
    watcher: Listener = field(default_factory=Listener)
    outputs: list[OutputResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _pending: list[OperationResult] = field(default_factory=list)
    _current: Step | None = None

    def execute(self) -> DataFrame:
        """Runs every step; the run ends completed, failed or cancelled, whatever happens."""
        log: str | None = None
        with recording_outcome(self.store, self.run, self._placed, lambda: log):
            log = self._log()  # asked first: a Spark that has died cannot be asked
            pipeline = self._pipeline()
            try:
                with (
                    beating(self.store, self.run),
                    self._inputs.explaining(),
                    explained(pipeline, lambda: self._current),
                    interruptible(self.spark),
                ):
                    check_catalog_tables(self.spark, self.plan)
                    frame = pipeline.run(self._write, self)
                    self._warn_of_rows_without_period()
                self._note_pending()
                self.store.complete_run(self.run)
                return frame
            finally:
                pipeline.release()

    @cached_property
    def _inputs(self) -> PlannedInputs:
        return PlannedInputs(self.spark, self.store.snapshot(self.run.id))

    def _pipeline(self) -> Pipeline:
        plan = self.plan
        tables = LocatedTables.of(self.spark, plan, self.calendar)
        return Pipeline(self.spark, plan.input, plan.schema, plan.steps, plan.context, tables)

    def started(self, step: Step) -> None:
        self._current = step
        self.watcher.started(step)

    def finished(self, step: Step, seconds: float) -> None:
        """Operations count as done when an output that needs them is: until then nothing was computed."""
        done = OperationResult(seq=step.seq, name=step.name, type=step.type, duration_ms=round(seconds * 1000))
        self._pending.append(done)
        if step.publishes is not None:
            self._note_pending()
        self.watcher.finished(step, seconds)

    def _note_pending(self, before: int | None = None) -> None:
        done = [result for result in self._pending if before is None or result.seq < before]
        if done:
            self.store.record_operations(self.run, *done)
        self._pending.clear()

    def _placed(self, problems: Sequence[Problem]) -> list[Problem]:
        """Problems with the operation they belong to; the operations before it count as done, if the store can still
        be told so."""
        at = next((step for step in self.plan.steps if step.seq == problems[0].seq), self._current)
        if at is None:
            return list(problems)
        with suppress(StoreError):
            self._note_pending(before=at.seq)
        return [at.attribute(problem) for problem in problems]

    def _log(self) -> str | None:
        log = log_file(self.spark)
        return str(log) if log else None

    def _write(self, output: Publication, frame: DataFrame) -> None:
        """Writes an output unless an earlier attempt has; then registers it."""
        done = next((result for result in self.store.output_results(self.run.id) if result.seq == output.seq), None)
        if done is None or not done.committed:
            done = self._write_rows(output, frame)
        if output.register_as is not None and done.dataset_version is None:
            done = self._register(output, done)
        self.outputs.append(done)

    def _write_rows(self, output: Publication, frame: DataFrame) -> OutputResult:
        place = self.plan.destinations[output.seq]
        self.store.record_output(self.run, OutputResult(seq=output.seq, place=str(place)))
        begun = time.monotonic()
        mode = write_mode(output, self.run)
        guard = self._guard(output)
        written = write(self.spark, frame, place, mode=mode, run_id=self.run.id, seq=output.seq, guard=guard)
        result = OutputResult(
            seq=output.seq,
            place=str(place),
            rows_written=written.rows,
            columns_written=written.columns,
            write_duration_ms=round((time.monotonic() - begun) * 1000),
            delta_version=written.version,
            committed=True,
        )
        self.store.record_output(self.run, result)
        return result

    def _guard(self, output: Publication) -> Guard:
        run = self.run
        id = f"tallybook:{run.project_id}:{run.calendar_id}:{run.period}:{output.seq}"

        def check() -> None:
            self._inputs.check()
            self.store.check_may_write(run)

        return Guard(check, id, run.claim, tuple(self.rivals))

    def _register(self, output: Publication, done: OutputResult) -> OutputResult:
        """After the write; if it fails the rows are there all the same, so the run goes on with a warning."""
        if self.run.sandbox:
            self.warn(f"output {output.seq} went to the sandbox and is not registered as '{output.register_as}'")
            return done
        try:
            dataset = registered_dataset(output)
            place = self.plan.destinations[output.seq]
            reads = location_to_json(Location(place.source, place.target, version=done.delta_version))
            made = self.store.register_dataset(dataset.id, body_of(dataset), self.run, output.seq, reads)
        except RunError:
            raise  # the run may no longer write
        except TallybookError as error:
            self.warn(f"output {output.seq} was written but not registered as '{output.register_as}': {error.message}")
            return done
        registered = done.model_copy(update={"dataset_id": made.dataset_id, "dataset_version": made.version})
        self.store.record_output(self.run, registered)
        self._warn_of_lost_rows(output, dataset, replace(place, version=done.delta_version))
        return registered

    def _warn_of_lost_rows(self, output: Publication, dataset: Dataset, place: Location) -> None:
        """Rows that operations made may lack what a run finds rows by; those of the input never do."""
        column = _FOUND_BY.get(dataset.main_table.temporal_mode)
        made = any(step.adds_rows for step in self.plan.steps if step.seq < output.seq)
        lost = read_output(self.spark, output, place).filter(f"{column} IS NULL").count() if column and made else 0
        if lost:
            self.warn(
                f"{lost:,} rows of output {output.seq} have no {column}, so no run that reads '{dataset.id}' finds "
                f"them; group by {column}, or leave it out of `columns`"
            )

    def _warn_of_rows_without_period(self) -> None:
        """After the outputs, so that only a run that got so far pays for it; no failure here undoes the run."""
        for source, places in self.plan.locations.items():
            if source.table.temporal_mode != "period":
                continue
            column = source.table.period_column
            try:
                lost = rows_without_period(self.spark, places, source.table)
            except (*SPARK_ERRORS, TallybookError):
                self.warn(f"rows of {source} without {column} could not be counted")
                continue
            if lost:
                self.warn(
                    f"{lost:,} rows of {source} have no {column}, so they belong to no period and no run reads them"
                )

    def warn(self, message: str) -> None:
        """Tells the user and keeps it with the run."""
        self.warnings.append(message)
        self.store.warn_run(self.run, message)
