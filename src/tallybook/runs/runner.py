"""Runs a project for a period, from its files to a completed run, and retries failed runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.engine.events import Observer, Warned
from tallybook.engine.execute import execute, working_rows
from tallybook.engine.plan import Plan, RunContext
from tallybook.engine.session import log_file
from tallybook.engine.tables import LocatedTables
from tallybook.errors import RunError, fail
from tallybook.model.period import Calendar
from tallybook.model.run import OperationResult, OutputResult, Run, Snapshot
from tallybook.project.lifecycle import check_project_runs
from tallybook.project.load import Definitions, ProjectEntry
from tallybook.project.recorded import Changes
from tallybook.runs.outputs import RunSink
from tallybook.runs.planner import Planner
from tallybook.runs.prepare import apply, calendar_of, prepare
from tallybook.runs.recorder import Recorder, recording_outcome
from tallybook.runs.run_guard import (
    EarlierAppends,
    append_outputs,
    check_may_run,
    earlier_appends,
    refuse_superseded,
)
from tallybook.runs.snapshot import PlannedInputs, calendar_then, changed_inputs, plan_again, take_snapshot
from tallybook.storage.inputs import fingerprint
from tallybook.store.active import beating
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RunResult:
    """A completed run and its results."""

    run: Run
    plan: Plan
    operations: Sequence[OperationResult]
    outputs: Sequence[OutputResult]
    warnings: Sequence[str]
    working: Callable[[], DataFrame]
    """Makes `frame`."""

    @cached_property
    def frame(self) -> DataFrame:
        """The final working dataset with deleted rows. Spark computes it when it is used."""
        return self.working()


@dataclass(frozen=True)
class Runner:
    """Runs projects of one workspace and records the runs in its store. Spark starts only when a run needs it."""

    definitions: Definitions
    store: Store
    session: Callable[[], SparkSession]
    sandbox: Path
    observers: Sequence[Observer] = ()

    def run(
        self,
        project_id: str,
        period_id: str,
        *,
        as_of: date | None = None,
        reopen_reason: str | None = None,
        again: bool = False,
    ) -> RunResult:
        """Records the files, then runs the current version of the project. A run that is refused records nothing.

        A project that has already appended for the period is refused, except with `again`.
        """
        prepared = prepare(self.definitions, self.store.recorded(), project_id)
        prepared.check_valid()
        entry = prepared.entry
        calendar = calendar_of(self.definitions)
        period = calendar.period(period_id)
        self.store.refuse_concurrent(project_id, period.identifier)
        earlier = check_may_run(
            self.store,
            prepared.changes,
            calendar,
            entry,
            period.identifier,
            reopen_reason=reopen_reason,
            again=again,
        )
        prepared = prepared.after(apply(self.store, prepared.checked))
        state = prepared.changes.state(project_id)
        assert state is not None, "recording gives every project a state"
        check_project_runs(project_id, state.status, state.conflicts)
        bound = prepared.fitting()
        planner = Planner(self.definitions, prepared.changes.recorded.registrations, self.sandbox)
        run = self.store.create_run(
            project_id,
            state.version,
            period.identifier,
            calendar_id=calendar.id,
            as_of=as_of or period.start_date,
            reopen_reason=reopen_reason,
            initial_period_status=calendar.initial_status(period.identifier),
        )
        with recording_outcome(self.store, run):
            context = RunContext(run.id, period, run.as_of, run.run_timestamp, run.id_epoch_ms)
            plan = planner.plan(bound, context, sandbox=run.sandbox)
            snapshot = self._snapshot(plan, entry, prepared.changes, earlier)
            started = self.store.start_run(run, snapshot)
        names_version = entry.head.input_dataset_version is not None
        warnings = [*plan.warnings, *([] if names_version else superseded_input(plan, prepared.changes))]
        return self._execute(started, snapshot, plan, calendar, earlier, warnings)

    def retry(self, run_id: str, *, reopen_reason: str | None = None, again: bool = False) -> RunResult:
        """Runs the snapshot of a failed or cancelled run again, except the outputs that it finished.

        It is refused if other runs have appended since it began, except with `again`.
        """
        before = self.store.run(run_id)
        refuse_superseded(self.store, before)
        earlier = EarlierAppends()
        if before.status in ("failed", "cancelled"):
            earlier = self._appended_since(before)
            if earlier.problem is not None and not again:
                raise RunError([earlier.problem])
            self._refuse_changed(before)
        calendar = calendar_of(self.definitions)
        initial = calendar.initial_status(before.period)
        run = self.store.retry_run(run_id, reopen_reason=reopen_reason, initial_period_status=initial)
        with recording_outcome(self.store, run):
            snapshot = self.store.snapshot(run_id)
            plan = plan_again(run, snapshot, self.store)
            calendar = calendar_then(snapshot, calendar)
        return self._execute(run, snapshot, plan, calendar, earlier)

    def _appended_since(self, run: Run) -> EarlierAppends:
        """Returns what other runs have appended since the run began, if the run still has to append."""
        snapshot = self.store.snapshot(run.id)
        done = {output.seq for output in self.store.output_results(run.id) if output.committed}
        if run.sandbox or append_outputs(snapshot.project) <= done:
            return EarlierAppends()
        return earlier_appends(self.store, run.project_id, run.period, but_not={run.id, *snapshot.appended_before})

    def _refuse_changed(self, run: Run) -> None:
        """Refuses a retry whose input has changed: all outputs of a run must come from the same rows."""
        changed = changed_inputs(self.session(), self.store.snapshot(run.id))
        if changed:
            raise fail(
                "RunNotRepeatable",
                f"run {run.id} cannot be retried because its input has changed: {'; '.join(changed)}",
                hint=f"start a new run: `tallybook run {run.project_id} --period {run.period}`",
            )

    def _snapshot(self, plan: Plan, entry: ProjectEntry, changes: Changes, earlier: EarlierAppends) -> Snapshot:
        project = entry.project
        assert project is not None, "a valid project is whole"
        engine = f"tallybook {version('tallybook')}, pyspark {version('pyspark')}"
        calendar = calendar_of(self.definitions)
        taken = take_snapshot(
            plan,
            project,
            calendar,
            changes.latest("resolver"),
            engine,
            lambda location: fingerprint(self.session(), location),
        )
        return taken.model_copy(update={"appended_before": earlier.runs})

    def _execute(
        self,
        run: Run,
        snapshot: Snapshot,
        plan: Plan,
        calendar: Calendar,
        earlier: EarlierAppends,
        warnings: Sequence[str] = (),
    ) -> RunResult:
        """Executes every step of a plan. Afterwards the run is completed, failed or cancelled."""
        log: str | None = None
        recorder = Recorder(self.store, run)
        with recording_outcome(self.store, run, lambda: log):
            spark = self.session()
            log = _log(spark)  # asked first: a Spark that has died cannot be asked
            again = [f"appends once more: {earlier.problem.message}"] if earlier.problem is not None else []
            observers: tuple[Observer, ...] = (recorder, *self.observers)
            for warning in (*again, *warnings):
                for observer in observers:
                    observer(Warned(warning))
            inputs = PlannedInputs(spark, snapshot)
            tables = LocatedTables.of(spark, plan, calendar)
            sink = RunSink(self.store, spark, run, plan, inputs, earlier.rivals)
            with beating(self.store, run), inputs.explaining(), recorder.attributing_bugs():
                execute(spark, plan, tables, sink, observers)
            self.store.complete_run(run)
        operations = self.store.operation_results(run.id)
        working = partial(working_rows, spark, plan, tables)
        return RunResult(self.store.run(run.id), plan, operations, recorder.outputs, recorder.warnings, working)


def _log(spark: SparkSession) -> str | None:
    log = log_file(spark)
    return str(log) if log else None


def superseded_input(plan: Plan, changes: Changes) -> Iterator[str]:
    """Yields a warning if the pinned input was registered by a run and a newer version is registered since."""
    dataset = plan.input.dataset
    newest = max(changes.datasets.versions[dataset.id])
    registered = {(entry.dataset_id, entry.version) for entry in changes.recorded.registrations}
    if (dataset.id, dataset.version) in registered and dataset.version < newest:
        yield (
            f"the input is version {dataset.version} of '{dataset.id}', version {newest} is registered; "
            f"`tallybook activate {plan.project_id}` pins the newest"
        )
