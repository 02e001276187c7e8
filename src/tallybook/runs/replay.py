"""replay: a recorded run executed again from its snapshot, into a scratch place, and compared cell by cell."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.engine.pipeline import Pipeline
from tallybook.engine.plan import Plan
from tallybook.engine.tables import LocatedTables
from tallybook.errors import ProblemError, fail
from tallybook.model.columns import ROW_ID
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar
from tallybook.model.run import OutputResult, Run, Snapshot
from tallybook.operations.output import OutputStep
from tallybook.runs.outputs import read_output
from tallybook.runs.places import location_from_json
from tallybook.runs.snapshot import plan_again
from tallybook.storage.fingerprint import changed_files, fingerprint
from tallybook.storage.write import write
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SHOWN = 20
"""Differing rows told of each side of an output."""


@dataclass(frozen=True)
class OutputComparison:
    """One output: what the run wrote against what the replay did."""

    seq: int
    place: str
    rows: int
    only_then: Sequence[dict[str, Any]] = ()
    only_now: Sequence[dict[str, Any]] = ()
    unknown: str | None = None
    """Why it could not be compared."""

    @property
    def identical(self) -> bool:
        return self.unknown is None and not self.only_then and not self.only_now


@dataclass(frozen=True)
class Replay:
    """The outcome: identical when every output is."""

    run: Run
    outputs: Sequence[OutputComparison]
    changed_inputs: Sequence[str]

    @property
    def identical(self) -> bool:
        return all(output.identical for output in self.outputs)


def replay(store: Store, spark: SparkSession, run_id: str, calendar: Calendar, scratch: Path) -> Replay:
    """Executes a completed run's snapshot again; destinations are not touched."""
    run = store.run(run_id)
    if run.status != "completed":
        raise fail("RunNotFound", f"run {run_id} is {run.status}: only a completed run can be replayed")
    snapshot = store.snapshot(run_id)
    plan = plan_again(run, snapshot, store)
    written = {result.seq: result for result in store.output_results(run_id)}
    folder = scratch / run.id
    comparisons: list[OutputComparison] = []

    def compare(step: OutputStep, frame: DataFrame) -> None:
        place = _scratch_place(folder, step)
        rows = write(spark, frame, place, mode="overwrite", run_id=f"{run.id}-replay", seq=step.seq).rows
        comparisons.append(_compare(store, spark, plan, step, place, rows, written[step.seq], run))

    tables = LocatedTables(spark, plan.locations, plan.facts.period, calendar)
    pipeline = Pipeline(spark, plan.input, plan.schema, plan.steps, plan.facts, tables)
    try:
        pipeline.run(compare)
    finally:
        pipeline.release()
        shutil.rmtree(folder, ignore_errors=True)
    return Replay(run, comparisons, changed_inputs(spark, snapshot))


def changed_inputs(spark: SparkSession, snapshot: Snapshot) -> list[str]:
    """The files that are not what they were when the run read them."""
    found: list[str] = []
    for kept in snapshot.resolver_snapshots:
        for body in kept.locations:
            found += changed_files(body.get("files", []), fingerprint(spark, location_from_json(body)))
    return list(dict.fromkeys(found))


def _scratch_place(folder: Path, step: OutputStep) -> Location:
    source = FileSource(id="scratch", type="parquet", options=FileOptions(path_prefix=str(folder)))
    return Location(source, str(folder / str(step.seq)))


def _compare(
    store: Store,
    spark: SparkSession,
    plan: Plan,
    step: OutputStep,
    place: Location,
    rows: int,
    result: OutputResult,
    run: Run,
) -> OutputComparison:
    original = replace(plan.destinations[step.seq], version=result.delta_version)
    comparison = OutputComparison(step.seq, str(original), rows)
    overwritten = _overwritten(store, run, result) if result.delta_version is None else None
    if overwritten is not None:
        return replace(comparison, unknown=f"run {overwritten.id} has written there since")
    names = [f"`{name}`" for name in step.columns]
    try:
        then = read_output(spark, step, original).select(*names)
    except ProblemError as error:
        return replace(comparison, unknown=error.problem.message)
    now = read_output(spark, step, place).select(*names)
    gone = [] if step.mode == "append" else _only(then, now)
    return replace(comparison, only_then=gone, only_now=_only(now, then))


def _only(one: DataFrame, other: DataFrame) -> list[dict[str, Any]]:
    """Rows of one that the other does not have, counted as often as they occur."""
    rest = one.exceptAll(other)
    ordered = rest.orderBy(ROW_ID) if ROW_ID in one.columns else rest
    return [row.asDict() for row in ordered.take(SHOWN)]


def _overwritten(store: Store, run: Run, result: OutputResult) -> Run | None:
    """A later run that wrote to the same place, where the format keeps no history."""
    for later in store.runs():
        if later.id_epoch_ms > run.id_epoch_ms and any(
            output.committed and output.place == result.place for output in store.output_results(later.id)
        ):
            return later
    return None
