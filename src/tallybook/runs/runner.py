"""Runs a project of a workspace for a period, from its files to a completed run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.engine.conditions import evaluator
from tallybook.engine.facts import RunFacts
from tallybook.engine.pipeline import Listener
from tallybook.engine.plan import Plan
from tallybook.errors import ProblemError
from tallybook.model.run import OperationResult, OutputResult, Run, Snapshot
from tallybook.project.checked import Checked
from tallybook.project.load import ProjectEntry
from tallybook.runs.execute import Execution
from tallybook.runs.planner import Planner, calendar_of, valid_project
from tallybook.runs.recording import known_datasets, record
from tallybook.runs.snapshot import plan_again, take_snapshot
from tallybook.storage.fingerprint import fingerprint
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RunResult:
    """What a run came to."""

    run: Run
    plan: Plan
    operations: Sequence[OperationResult]
    outputs: Sequence[OutputResult]
    warnings: Sequence[str]
    frame: DataFrame
    """The final working dataset, deleted rows included; computed when it is used."""


@dataclass(frozen=True)
class Runner:
    """Runs projects of one checked workspace against its store."""

    checked: Checked
    store: Store
    spark: SparkSession
    sandbox: Path
    watcher: Listener = field(default_factory=Listener)

    def run(
        self, project_id: str, period_id: str, *, as_of: date | None = None, reopen_reason: str | None = None
    ) -> RunResult:
        """Records the files, then runs the project's current version."""
        entry = valid_project(self.checked, project_id)
        calendar = calendar_of(self.checked)
        period = calendar.period(period_id)
        record(self.store, self.checked.definitions)
        state = self.store.project_state(project_id)
        assert state is not None, "recording gives every project a state"
        run = self.store.create_run(
            project_id,
            state.version,
            period.identifier,
            calendar_id=calendar.id,
            as_of=as_of or period.start_date,
            reopen_reason=reopen_reason,
            initial_period_status=calendar.initial_status(period.identifier),
        )
        try:
            facts = RunFacts(run.id, period, run.as_of, run.run_timestamp, run.id_epoch_ms)
            planner = Planner(self.checked, known_datasets(self.store), evaluator(lambda: self.spark), self.sandbox)
            plan = planner.plan(entry, state, facts, sandbox=run.sandbox)
            started = self.store.start_run(run, self._snapshot(plan, entry))
        except ProblemError as error:
            self.store.fail_run(run, error.problem)
            raise
        return self._execute(started, plan)

    def retry(self, run_id: str, *, reopen_reason: str | None = None) -> RunResult:
        """Runs a failed or cancelled run's snapshot again; outputs it finished are not written again."""
        run = self.store.retry_run(run_id, reopen_reason=reopen_reason)
        return self._execute(run, plan_again(run, self.store.snapshot(run_id), self.store))

    def _snapshot(self, plan: Plan, entry: ProjectEntry) -> Snapshot:
        project = entry.project
        assert project is not None, "a valid project is whole"
        versions = {definition.id: definition.version for definition in self.store.all_latest("resolver")}
        engine = f"tallybook {version('tallybook')}, pyspark {version('pyspark')}"
        return take_snapshot(plan, project, versions, engine, lambda place: fingerprint(self.spark, place))

    def _execute(self, run: Run, plan: Plan) -> RunResult:
        execution = Execution(self.store, self.spark, run, plan, calendar_of(self.checked), self.watcher)
        frame = execution.execute()
        operations = self.store.operation_results(run.id)
        return RunResult(self.store.run(run.id), plan, operations, execution.outputs, execution.warnings, frame)
