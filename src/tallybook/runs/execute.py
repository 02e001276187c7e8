"""Executes the plan of a run: publishes and registers its outputs once, and records how it ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tallybook.engine.events import Observer
from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.plan import Plan
from tallybook.engine.session import log_file
from tallybook.engine.tables import LocatedTables
from tallybook.errors import RunError, TallybookError
from tallybook.model.columns import PERIOD, VALID_FROM
from tallybook.model.dataset import Dataset
from tallybook.model.location import Location
from tallybook.model.period import Calendar
from tallybook.model.run import OutputResult, Run
from tallybook.operations.publication import Publication
from tallybook.project.dataset_versions import registered_dataset
from tallybook.project.recorded import body_of
from tallybook.runs.destinations import check_catalog_tables
from tallybook.runs.inputs import PlannedInputs
from tallybook.runs.locations import location_to_json
from tallybook.runs.outputs import read_output, write_mode
from tallybook.runs.recorder import Recorder, recording_outcome
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.inputs import rows_without_period
from tallybook.storage.output import Guard
from tallybook.storage.write import write
from tallybook.store.active import beating
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOUND_BY = {"period": PERIOD, "bitemporal": VALID_FROM}
"""The column by which a run finds its rows in a table."""


def execute_run(
    recorder: Recorder,
    spark: SparkSession,
    plan: Plan,
    calendar: Calendar,
    observers: Sequence[Observer],
    rivals: Sequence[str] = (),
) -> DataFrame:
    """Executes every step and returns the final working dataset. Afterwards the run is completed, failed or cancelled.

    `rivals` are other runs that began to append the same rows and may not be dead.
    """
    store, run = recorder.store, recorder.run
    log: str | None = None
    with recording_outcome(store, run, lambda: log):
        log = _log(spark)  # asked first: a Spark that has died cannot be asked
        inputs = PlannedInputs(spark, store.snapshot(run.id))
        tables = LocatedTables.of(spark, plan, calendar)
        sink = RunSink(store, spark, run, plan, inputs, tuple(rivals))
        with beating(store, run), inputs.explaining(), recorder.attributing_bugs():
            working = execute(spark, plan, tables, sink, (recorder, *observers))
        store.complete_run(run)
        return working


def _log(spark: SparkSession) -> str | None:
    log = log_file(spark)
    return str(log) if log else None


@dataclass(frozen=True)
class RunSink(Sink):
    """Publishes the outputs of one attempt at a run."""

    store: Store
    spark: SparkSession
    run: Run
    plan: Plan
    inputs: PlannedInputs
    rivals: tuple[str, ...] = ()

    def prepare(self) -> None:
        check_catalog_tables(self.spark, self.plan)

    def publish(self, output: Publication, rows: DataFrame, warn: Warn) -> OutputResult:
        """Writes an output unless an earlier attempt did, and registers it."""
        done = next((result for result in self.store.output_results(self.run.id) if result.seq == output.seq), None)
        if done is None or not done.committed:
            done = self._write_rows(output, rows)
        if output.register_as is not None and done.dataset_version is None:
            done = self._register(output, done, warn)
        return done

    def finish(self, _working: DataFrame, warn: Warn) -> None:
        """Warns of rows without a period. They are counted after the outputs, so that a failed run does not pay for it.
        A failure to count does not fail the run."""
        for source, locations in self.plan.locations.items():
            if source.table.temporal_mode != "period":
                continue
            column = source.table.period_column
            try:
                lost = rows_without_period(self.spark, locations, source.table)
            except (*SPARK_ERRORS, TallybookError):
                warn(f"rows of {source} without {column} could not be counted")
                continue
            if lost:
                warn(f"{lost:,} rows of {source} have no {column}, so they belong to no period and no run reads them")

    def _write_rows(self, output: Publication, frame: DataFrame) -> OutputResult:
        destination = self.plan.destinations[output.seq]
        self.store.record_output(self.run, OutputResult(seq=output.seq, location=str(destination)))
        begun = time.monotonic()
        mode = write_mode(output, self.run)
        guard = self._guard(output)
        written = write(self.spark, frame, destination, mode=mode, run_id=self.run.id, seq=output.seq, guard=guard)
        result = OutputResult(
            seq=output.seq,
            location=str(destination),
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
            self.inputs.check()
            self.store.check_may_write(run)

        return Guard(check, id, run.claim, self.rivals)

    def _register(self, output: Publication, done: OutputResult, warn: Warn) -> OutputResult:
        """Registers a written output as a dataset. If that fails the rows are written all the same, so the run goes on
        with a warning."""
        if self.run.sandbox:
            warn(f"output {output.seq} went to the sandbox and is not registered as '{output.register_as}'")
            return done
        try:
            dataset = registered_dataset(output)
            destination = self.plan.destinations[output.seq]
            reads = location_to_json(Location(destination.source, destination.target, version=done.delta_version))
            made = self.store.register_dataset(dataset.id, body_of(dataset), self.run, output.seq, reads)
        except RunError:
            raise  # the run may no longer write
        except TallybookError as error:
            warn(f"output {output.seq} was written but not registered as '{output.register_as}': {error.message}")
            return done
        registered = done.model_copy(update={"dataset_id": made.dataset_id, "dataset_version": made.version})
        self.store.record_output(self.run, registered)
        self._warn_of_lost_rows(output, dataset, replace(destination, version=done.delta_version), warn)
        return registered

    def _warn_of_lost_rows(self, output: Publication, dataset: Dataset, destination: Location, warn: Warn) -> None:
        """Warns of registered rows that no run will find. Only rows that an operation added can be such rows."""
        column = _FOUND_BY.get(dataset.main_table.temporal_mode)
        made = any(step.adds_rows for step in self.plan.steps if step.seq < output.seq)
        lost = (
            read_output(self.spark, output, destination).filter(f"{column} IS NULL").count() if column and made else 0
        )
        if lost:
            warn(
                f"{lost:,} rows of output {output.seq} have no {column}, so no run that reads '{dataset.id}' finds "
                f"them; group by {column}, or leave it out of `columns`"
            )
