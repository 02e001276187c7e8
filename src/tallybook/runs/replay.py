"""Executes a recorded run again from its snapshot, into a scratch folder, and compares its outputs cell by cell."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.plan import Plan
from tallybook.engine.tables import LocatedTables
from tallybook.errors import ProblemError, RunError, fail
from tallybook.model.columns import ROW_ID
from tallybook.model.datasource import DEFAULT_FORMAT, DataSource, FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar
from tallybook.model.run import CheckResult, OutputResult, Run
from tallybook.operations.publication import Publication
from tallybook.rows import sql
from tallybook.runs.outputs import first_rows, read_output, write_mode, written_at
from tallybook.runs.snapshot import changed_inputs, plan_again
from tallybook.storage.write import write
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SHOWN = 20
"""The most differing rows to show of each side of an output."""


@dataclass(frozen=True)
class OutputComparison:
    """The rows of one output that only the run, or only the replay, wrote."""

    seq: int
    location: str
    rows: int
    only_then: Sequence[dict[str, Any]] = ()
    only_now: Sequence[dict[str, Any]] = ()
    unknown: str | None = None
    """Why it could not be compared."""

    @property
    def identical(self) -> bool | None:
        """True if the rows are the same; None if they could not be compared."""
        return None if self.unknown is not None else not self.only_then and not self.only_now


@dataclass(frozen=True)
class CheckComparison:
    """What a check found in the run and in the replay."""

    then: CheckResult | None
    now: CheckResult

    @property
    def identical(self) -> bool:
        return self.then is not None and (self.then.tested, self.then.failed) == (self.now.tested, self.now.failed)


@dataclass(frozen=True)
class Replay:
    """What a replay found: how each output and check compares, and which inputs changed since the run."""

    run: Run
    outputs: Sequence[OutputComparison]
    changed_inputs: Sequence[str]
    checks: Sequence[CheckComparison] = ()

    @property
    def identical(self) -> bool | None:
        """True if all outputs and checks are the same, False if one differs. None if none differs but an output could
        not be compared, or if there is neither an output nor a check."""
        verdicts = {*(output.identical for output in self.outputs), *(check.identical for check in self.checks)}
        return False if False in verdicts else None if None in verdicts or not verdicts else True


def replay(store: Store, session: Callable[[], SparkSession], run_id: str, calendar: Calendar, scratch: Path) -> Replay:
    """Executes the snapshot of a completed run again. It writes to the scratch folder only."""
    run = store.run(run_id)
    if run.status != "completed":
        message = f"run {run_id} is {run.status}: only a completed run can be replayed"
        raise fail("RunNotRepeatable", message, hint="`tallybook runs --status completed` lists those that can")
    snapshot = store.snapshot(run_id)
    plan = plan_again(run, snapshot, store, calendar)
    spark = session()
    sink = ReplaySink(store, spark, run, plan, scratch.resolve() / f"{run.id}-{uuid4().hex}")
    changed = changed_inputs(spark, snapshot)
    try:
        with _naming(changed), LocatedTables.of(spark, plan).held() as (tables, _):
            execute(spark, plan, tables, sink)
    finally:
        shutil.rmtree(sink.folder, ignore_errors=True)
    then = {result.seq: result for result in store.check_results(run_id)}
    checks = [CheckComparison(then.get(now.seq), now) for now in sink.checks]
    return Replay(run, sink.comparisons, changed, checks)


@contextmanager
def _naming(changed: Sequence[str]) -> Iterator[None]:
    """Adds the inputs that changed to the problem of a replay that fails: they are the most likely cause."""
    try:
        yield
    except ProblemError as error:
        if not changed:
            raise
        why = f"input changed since the run: {'; '.join(changed)}"
        raise RunError(replace(problem, hint=why) for problem in error.problems) from error


@dataclass
class ReplaySink(Sink):
    """Compares each output of a replay with what the run wrote."""

    store: Store
    spark: SparkSession
    run: Run
    plan: Plan
    folder: Path
    comparisons: list[OutputComparison] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    stops_at_failed_check: bool = False

    def take_check(self, result: CheckResult) -> None:
        self.checks.append(result)

    def publish(self, output: Publication, rows: DataFrame, _warn: Warn) -> None:
        self.comparisons.append(self._compared(output, rows))

    def _compared(self, output: Publication, rows: DataFrame) -> OutputComparison:
        scratch = Location(self._scratch_source(output), str(self.folder / str(output.seq)))
        written = write(self.spark, rows, scratch, mode="overwrite", run_id=self.run.id, seq=output.seq)
        result = next(result for result in self.store.output_results(self.run.id) if result.seq == output.seq)
        original = written_at(self.plan.destinations[output.seq], result)
        comparison = OutputComparison(output.seq, str(original), written.rows)
        later = self._written_later(result) if result.delta_version is None else None
        if later is not None:
            return replace(comparison, unknown=f"{later} has written there since")
        names = [sql.name(name) for name in output.columns]
        try:
            then = read_output(self.spark, output, original).select(*names)
            now = read_output(self.spark, output, scratch).select(*names)
            gone = [] if write_mode(output, self.run) == "append" else _only(then, now)
            return replace(comparison, only_then=gone, only_now=_only(now, then))
        except ProblemError as error:
            return replace(comparison, unknown=error.problem.message)

    def _scratch_source(self, output: Publication) -> DataSource:
        """Returns the datasource for the rows of the replay.

        It has the format of the destination if that is plain files. The rows then lose the same things: CSV, for
        example, has no difference between an empty text and NULL.
        """
        source = self.plan.destinations[output.seq].source
        if source.path_prefix is not None and not source.keeps_versions:
            return source
        return FileSource(id="scratch", type=DEFAULT_FORMAT, options=FileOptions(path_prefix=str(self.folder)))

    def _written_later(self, result: OutputResult) -> str | None:
        """Names the output that wrote to the same location after this one, if any."""
        later = self.store.written_later(self.run, result)
        if later is None:
            return None
        if later.run_id == self.run.id:
            return f"output {later.seq}"
        return f"run {later.run_id}" + (f" of workspace '{later.workspace}'" if later.workspace is not None else "")


def _only(one: DataFrame, other: DataFrame) -> list[dict[str, Any]]:
    """Returns the first rows of one frame that the other does not have; a row counts as often as it occurs."""
    rest = one.exceptAll(other)
    ordered = rest.orderBy(ROW_ID) if ROW_ID in one.columns else rest
    return [row.asDict() for row in first_rows(ordered, one.columns, SHOWN)]
