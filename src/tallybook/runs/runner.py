"""Runs a project of a workspace for a period, from its files to a completed run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.conditions import evaluator
from tallybook.engine.facts import RunFacts
from tallybook.engine.pipeline import Listener
from tallybook.engine.plan import Plan, make_plan
from tallybook.errors import Problem, ProblemError, ValidationError, did_you_mean
from tallybook.model.period import Calendar, Period
from tallybook.model.run import OutputResult, Run
from tallybook.model.state import ProjectState
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.checked import Checked
from tallybook.project.load import ProjectEntry
from tallybook.runs.execute import Execution
from tallybook.runs.places import Places
from tallybook.runs.recording import Known, known_datasets, record
from tallybook.runs.snapshot import plan_again, take_snapshot
from tallybook.store.store import Store


@dataclass(frozen=True)
class RunResult:
    """What a run came to."""

    run: Run
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

    @property
    def calendar(self) -> Calendar:
        calendar = self.checked.calendar
        assert calendar is not None, "a missing calendar is a problem of the workspace"
        return calendar

    def run(
        self, project_id: str, period_id: str, *, as_of: date | None = None, reopen_reason: str | None = None
    ) -> RunResult:
        """Records the files, then runs the project's current version."""
        entry = self._entry(project_id)
        period = self.calendar.period(period_id)
        state = self._recorded(project_id)
        run = self.store.create_run(
            project_id,
            state.version,
            period.identifier,
            calendar_id=self.calendar.id,
            as_of=as_of or period.start_date,
            reopen_reason=reopen_reason,
            initial_period_status=self.calendar.initial_status(period.identifier),
        )
        try:
            facts = RunFacts(run.id, period, run.as_of, run.run_timestamp, run.id_epoch_ms)
            plan = self.plan(entry, state, facts, sandbox=run.sandbox)
            project = entry.project
            assert project is not None
            started = self.store.start_run(
                run, take_snapshot(plan, project, self._resolver_versions, _engine_version())
            )
        except ProblemError as error:
            self.store.fail_run(run, error.problem)
            raise
        return self._execute(started, plan)

    def retry(self, run_id: str, *, reopen_reason: str | None = None) -> RunResult:
        """Runs a failed or cancelled run's snapshot again; outputs it finished are not written again."""
        run = self.store.retry_run(run_id, reopen_reason=reopen_reason)
        return self._execute(run, plan_again(run, self.store.snapshot(run_id), self.store))

    def _execute(self, run: Run, plan: Plan) -> RunResult:
        execution = Execution(self.store, self.spark, run, plan, self.calendar, self.watcher)
        frame = execution.execute()
        return RunResult(self.store.run(run.id), execution.outputs, execution.warnings, frame)

    def plan(self, entry: ProjectEntry, state: ProjectState | None, facts: RunFacts, *, sandbox: bool) -> Plan:
        """What a run would do, every place resolved; nothing is written."""
        bound = self.bind(entry, state)
        places = self._places(bound, facts.period, self.sandbox / entry.head.id if sandbox else None)
        input_id = entry.head.input_dataset_id
        return make_plan(bound, facts, places.of_table, lambda step: places.of_output(step, input_id))

    def bind(self, entry: ProjectEntry, state: ProjectState | None) -> BoundProject:
        """The project against the dataset versions of the store, its input at the pinned version."""
        pinned = state.input_dataset_version if state else None
        version = {"version": state.version} if state else {}
        update = version | ({"input_dataset_version": pinned} if pinned is not None else {})
        return bind_project(entry.head.model_copy(update=update), entry.operations, self._known.catalog, entry.part)

    @cached_property
    def _known(self) -> Known:
        return known_datasets(self.store)

    @cached_property
    def _resolver_versions(self) -> dict[str, int]:
        return {definition.id: definition.version for definition in self.store.all_latest("resolver")}

    def _entry(self, project_id: str) -> ProjectEntry:
        entry = self.checked.definitions.projects.get(project_id)
        if entry is None:
            hint = did_you_mean(project_id, self.checked.definitions.projects)
            raise ValidationError([Problem("ProjectNotFound", f"there is no project '{project_id}'", hint)])
        wrong = [problem for problem in self.checked.problems if problem.project in (None, project_id)]
        if wrong:
            raise ValidationError(wrong)
        return entry

    def _recorded(self, project_id: str) -> ProjectState:
        record(self.store, self.checked.definitions)
        state = self.store.project_state(project_id)
        assert state is not None
        return state

    def _places(self, bound: BoundProject, period: Period, sandbox: Path | None) -> Places:
        definitions = self.checked.definitions
        return Places(
            root=definitions.root,
            period=period,
            calendar=self.calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered=self._known.registered,
            evaluate=evaluator(self.spark),
            sandbox=sandbox,
        )


def _engine_version() -> str:
    return f"tallybook {version('tallybook')}, pyspark {version('pyspark')}"
