"""Runs a project for a period, from its files to a completed run, and retries failed runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tallybook.engine.events import Event, Observer, RunOpened, Warned
from tallybook.engine.execute import execute, working_rows
from tallybook.engine.plan import Plan, RunContext
from tallybook.engine.session import log_file
from tallybook.engine.tables import LocatedTables
from tallybook.errors import RunError, fail
from tallybook.expressions.parameters import parameter_values
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import Calendar
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run, Snapshot
from tallybook.model.written import written
from tallybook.project.lifecycle import check_project_runs
from tallybook.project.load import Definitions
from tallybook.project.recorded import Changes
from tallybook.runs.outputs import RunSink
from tallybook.runs.planner import Planner
from tallybook.runs.prepare import Prepared, apply, calendar_of, prepare
from tallybook.runs.recorder import Recorder, recording_outcome
from tallybook.runs.run_guard import (
    EarlierAppends,
    append_outputs,
    check_may_run,
    earlier_appends,
    refuse_superseded,
)
from tallybook.runs.sandbox import sandbox_datasets
from tallybook.runs.snapshot import PlannedInputs, changed_inputs, plan_again, take_snapshot
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
    checks: Sequence[CheckResult]
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
        parameters: Mapping[str, object] = MappingProxyType({}),
        reopen_reason: str | None = None,
        reason: str | None = None,
        again: bool = False,
        draft: bool = False,
    ) -> RunResult:
        """Records the files, then runs the current version of the project. A run that is refused records nothing.

        A project that has already appended for the period is refused, except with `again`. One that was active and has
        changed since is refused, except with `draft`, which runs any project in the sandbox.
        """
        calendar = calendar_of(self.definitions)
        find = partial(sandbox_datasets, self.store, self.definitions, calendar, project_id, draft=draft)
        prepared = prepare(self.definitions, self.store.recorded(), project_id, find_sandbox=find)
        prepared.check_valid()
        entry = prepared.entry
        values = parameter_values(entry.head.parameters, parameters, project_id)
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
            draft=draft,
        )
        prepared.fitting()
        prepared = prepared.after(apply(self.store, prepared.checked))
        state = prepared.changes.state(project_id)
        assert state is not None, "recording gives every project a state"
        check_project_runs(state, draft=draft)
        bound = prepared.fitting()
        planner = Planner(self.definitions, prepared.changes.recorded.registrations, self.sandbox, prepared.sandbox)
        run = self.store.create_run(
            project_id,
            state.version,
            period.identifier,
            calendar_id=calendar.id,
            as_of=as_of or period.start_date,
            parameters={name: written(value) for name, value in values.items()},
            sandbox=draft,
            reopen_reason=reopen_reason,
            reason=reason,
            nested=NestedPeriod(period, calendar),
        )
        with recording_outcome(self.store, run):
            self._notify(RunOpened(run))
            epoch_ms = run.id_epoch_ms
            context = RunContext(run.id, period, run.as_of, run.run_timestamp, epoch_ms, values, calendar)
            plan = planner.plan(bound, context, sandbox=run.sandbox)
            snapshot = self._snapshot(plan, prepared, earlier)
            started = self.store.start_run(run, snapshot)
        names_version = entry.head.input_dataset_version is not None
        warnings = [*plan.warnings, *([] if names_version else superseded_input(plan, prepared.changes))]
        warnings += unrecorded(prepared.changes)
        return self._execute(started, snapshot, plan, earlier, warnings)

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
        run = self.store.retry_run(run_id, reopen_reason=reopen_reason, nested=_nested(before, calendar))
        with recording_outcome(self.store, run):
            self._notify(RunOpened(run))
            snapshot = self.store.snapshot(run_id)
            plan = plan_again(run, snapshot, self.store, calendar)
        return self._execute(run, snapshot, plan, earlier)

    def _notify(self, event: Event) -> None:
        for observer in self.observers:
            observer(event)

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

    def _snapshot(self, plan: Plan, prepared: Prepared, earlier: EarlierAppends) -> Snapshot:
        project = prepared.entry.project
        assert project is not None, "a valid project is whole"
        engine = f"tallybook {version('tallybook')}, pyspark {version('pyspark')}"
        taken = take_snapshot(
            plan,
            project,
            prepared.changes.latest("resolver"),
            engine,
            lambda location: fingerprint(self.session(), location),
            [found.dataset for found in prepared.sandbox.by_id.values()],
            self.definitions.environment,
        )
        return taken.model_copy(update={"appended_before": earlier.runs})

    def _execute(
        self,
        run: Run,
        snapshot: Snapshot,
        plan: Plan,
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
            tables = LocatedTables.of(spark, plan)
            with tables.held() as (read, instead):
                inputs = PlannedInputs(spark, snapshot, instead)
                sink = RunSink(self.store, spark, run, plan, inputs, earlier.rivals)
                with beating(self.store, run), inputs.explaining(), recorder.attributing_bugs():
                    execute(spark, plan, read, sink, observers)
            self.store.complete_run(run)
        operations = self.store.operation_results(run.id)
        working = partial(_working_dataset, spark, plan)
        ended = self.store.run(run.id)
        return RunResult(ended, plan, operations, recorder.outputs, recorder.checks, recorder.warnings, working)


def _working_dataset(spark: SparkSession, plan: Plan) -> DataFrame:
    tables = LocatedTables.of(spark, plan, needs_working=True)
    return working_rows(spark, plan, tables, needs_checks=False)


def _log(spark: SparkSession) -> str | None:
    log = log_file(spark)
    return str(log) if log else None


def _nested(run: Run, calendar: Calendar) -> NestedPeriod | None:
    """Returns the period of a run on the current calendar; None if that is another calendar, or has lost the period."""
    try:
        return NestedPeriod.of(calendar, run.period) if run.calendar_id == calendar.id else None
    except RunError:
        return None


def superseded_input(plan: Plan, changes: Changes) -> Iterator[str]:
    """Yields a warning if the pinned input was registered by a run and a newer version is registered since. An input by
    period follows the newest version of each period."""
    dataset = plan.input.dataset
    newest = max(changes.datasets.versions.get(dataset.id, ()), default=0)
    registered = {(entry.dataset_id, entry.version) for entry in changes.recorded.registrations}
    by_period = plan.input.table.temporal_mode == "period"
    if (dataset.id, dataset.version) in registered and dataset.version < newest and not by_period:
        yield (
            f"the input is version {dataset.version} of '{dataset.id}', version {newest} is registered; "
            f"`tallybook activate {plan.project_id}` pins the newest"
        )


def unrecorded(changes: Changes) -> Iterator[str]:
    """Yields a warning if files with problems were not recorded with the run."""
    files = sorted({problem.place.file for problem in changes.left_out if problem.place is not None})
    if files:
        yield f"definitions with problems are not recorded: {', '.join(files)}; see `tallybook validate`"
