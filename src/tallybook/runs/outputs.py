"""Publishes and registers the outputs of a run once, reads back what an output wrote, and shows its first rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tallybook.engine.execute import Sink, Warn
from tallybook.engine.plan import Plan
from tallybook.errors import RunError, TallybookError
from tallybook.model.columns import PERIOD, ROW_ID, SYSTEM_COLUMNS, VALID_FROM, ColumnDef
from tallybook.model.dataset import Dataset, Table
from tallybook.model.location import Location
from tallybook.model.run import FirstRows, OutputResult, Run
from tallybook.operations.publication import Mode, Publication
from tallybook.project.dataset_versions import registered_dataset
from tallybook.project.recorded import body_of
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.runs.destinations import check_catalog_tables
from tallybook.runs.snapshot import PlannedInputs
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.inputs import rows_without_period
from tallybook.storage.output import Guard
from tallybook.storage.read import read
from tallybook.storage.write import write, written_by
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_FOUND_BY = {"period": PERIOD, "bitemporal": VALID_FROM}
"""The column by which a run finds its rows in a table."""


@dataclass(frozen=True)
class RunSink(Sink):
    """Publishes the outputs of one attempt at a run."""

    store: Store
    spark: SparkSession
    run: Run
    plan: Plan
    inputs: PlannedInputs
    rivals: tuple[str, ...] = ()
    warns_of_empty_input: ClassVar[bool] = True

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

    def finish(self, warn: Warn) -> None:
        """Warns of rows without a period. They are counted after the outputs, so that a failed run does not pay for it.
        A failure to count does not fail the run."""
        counted: set[tuple[Table, tuple[Location, ...]]] = set()
        for source, locations in self.plan.locations.items():
            if source.table.temporal_mode != "period" or (source.table, locations) in counted:
                continue
            counted.add((source.table, locations))
            column = source.table.period_column
            try:
                lost = rows_without_period(self.spark, locations, source.table)
            except (*SPARK_ERRORS, TallybookError):
                warn(f"rows of {source} without {column} could not be counted")
                continue
            if lost:
                rows, has, they, them = _LOST_ROW if lost == 1 else _LOST_ROWS
                warn(f"{lost:,} {rows} of {source} {has} no {column}, so {they} to no period and no run reads {them}")

    def _write_rows(self, output: Publication, frame: DataFrame) -> OutputResult:
        destination = self.plan.destinations[output.seq]
        self.store.record_output(self.run, OutputResult(seq=output.seq, location=str(destination)))
        begun = time.monotonic()
        mode = write_mode(output, self.run)
        written = write(
            self.spark,
            frame,
            destination,
            mode=mode,
            run_id=self.run.id,
            seq=output.seq,
            guard=self._guard(output),
            periods=self.plan.replaced_periods(output) if mode == "replace_period" else None,
            partition_by=output.partition_by,
            ordered=bool(output.order_by),
        )
        result = OutputResult(
            seq=output.seq,
            location=str(destination),
            rows_written=written.rows,
            columns_written=written.columns,
            write_duration_ms=round((time.monotonic() - begun) * 1000),
            delta_version=written.version,
            periods_replaced=written.periods,
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
            warn(f"output {output.seq} went to the sandbox, where only drafts can read it as '{output.register_as}'")
            return done
        try:
            dataset = registered_dataset(output)
            destination = self.plan.destinations[output.seq]
            reads = Location(destination.source, destination.target, version=done.delta_version).to_json()
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
        column = output.written_name(_FOUND_BY.get(dataset.main_table.temporal_mode, ""))
        made = any(step.adds_rows for step in self.plan.steps if step.seq < output.seq)
        made = made and output.mode != "replace_period"  # which refuses rows without a period
        lost = (
            read_output(self.spark, output, destination).filter(f"{sql.name(column)} IS NULL").count()
            if column and made
            else 0
        )
        if lost:
            rows, has, _, them = _LOST_ROW if lost == 1 else _LOST_ROWS
            warn(
                f"{lost:,} {rows} of output {output.seq} {has} no {column}, so no run that reads '{dataset.id}' finds "
                f"{them}; group by {column}, or leave it out of `columns`"
            )


_LOST_ROW = ("row", "has", "it belongs", "it")
_LOST_ROWS = ("rows", "have", "they belong", "them")
"""The words for one row, and for several, that no run finds."""


def write_mode(output: Publication, run: Run) -> Mode:
    """Returns the mode of an output. In the sandbox it always replaces: only the last run of a draft is kept there."""
    return "overwrite" if run.sandbox else output.mode


def written_at(destination: Location, output: OutputResult) -> Location:
    """Returns where the rows of an output are: its version of the table, and there the periods that it replaced. Rows
    that an output with `mode: append` found there are included."""
    return replace(destination, version=output.delta_version, periods=output.periods_replaced)


def read_output(spark: SparkSession, output: Publication, location: Location) -> DataFrame:
    """Returns the rows that an output wrote, with their positions and the system columns that were written."""
    columns = tuple(
        ColumnDef(name=name, type=type) for name, type in output.columns.items() if name not in SYSTEM_COLUMNS
    )
    return read(spark, location, Table.model_construct(name=output.name, columns=columns))


def first_rows(frame: DataFrame, columns: Sequence[str], count: int) -> list[Row]:
    """Returns rows to show. Spark turns dates and timestamps into text: Python would show timestamps in the time zone
    of the machine, and has no year before 1 or after 9999."""
    types = dict(frame.dtypes)
    values = {
        name: f"CAST({sql.name(name)} AS string)" if types[name] in ("date", "timestamp") else sql.name(name)
        for name in columns
    }
    return sql.select(frame, values).take(count)


def output_rows(spark: SparkSession, plan: Plan, run: Run, output: OutputResult, count: int) -> FirstRows:
    """Returns the first rows as they were written, in the order of the output, else of their ids, else of the data."""
    published = next(published for published in plan.outputs if published.seq == output.seq)
    is_added = write_mode(published, run) == "append"
    if is_added and not plan.destinations[output.seq].source.keeps_versions:
        own = {name: type for name, type in published.columns.items() if name not in published.partition_by}
        published = replace(published, columns=own)
    shown = list(published.columns)
    location = written_at(plan.destinations[output.seq], output)
    if is_added:
        location = written_by(location, run.id, output.seq, published.partition_by)
    frame = read_output(spark, published, location)
    order = ROW_ID if ROW_ID in frame.columns and not published.order_by else POSITION
    rows = first_rows(frame.orderBy(order), shown, count)
    return FirstRows(published.columns, tuple(map(tuple, rows)))
