"""The use cases that the command line, scripts and notebooks call, each in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.errors import Problem, RunError, UsageError, ValidationError, did_you_mean
from tallybook.expressions.scope import Scope
from tallybook.model.dataset import DatasetRef
from tallybook.project.bind import working_schema
from tallybook.project.check import check, file_order
from tallybook.project.check_result import CheckResult
from tallybook.project.files import SETTINGS_FILE, has_settings
from tallybook.project.load import Definitions, find_root, load_definitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tallybook.documents.lifecycle import JoinedStore, PeriodList, PeriodState, RenamedWorkspace, UpgradedStore
    from tallybook.documents.session import StoppedSessions, WarmSessions, WarmSessionState
    from tallybook.engine.events import Observer
    from tallybook.engine.plan import Plan
    from tallybook.model.period import Calendar, PeriodStatus
    from tallybook.model.run import RunStatus
    from tallybook.model.state import ProjectState
    from tallybook.project.explain import Explanation
    from tallybook.project.recorded import Changes, Recorded
    from tallybook.runs.environment import Environment
    from tallybook.runs.history import DatasetVersion, RunDetails, RunList
    from tallybook.runs.replay import Replay
    from tallybook.runs.runner import Runner, RunResult
    from tallybook.scenarios.load import Case
    from tallybook.scenarios.suite import Outcome
    from tallybook.store.store import Store


@dataclass(frozen=True)
class Workspace:
    """A folder with a settings file and the definitions below it, as they were when first read."""

    root: Path
    warm: bool = False
    """Whether runs and tests use the warm session, if it runs."""

    @classmethod
    def open(cls, folder: Path | str | None = None, *, warm: bool = False) -> Workspace:
        """Opens the workspace in a folder; by default the nearest one from the current folder upwards.

        Its root is the resolved path: the store compares locations by their paths.
        """
        if folder is None:
            return cls(find_root(Path.cwd()), warm)
        root = Path(folder).resolve()
        if not has_settings(root):
            raise UsageError(
                f"'{folder}' is not a workspace: it has no {SETTINGS_FILE}", "make one with `tallybook init`"
            )
        return cls(root, warm)

    @cached_property
    def definitions(self) -> Definitions:
        return load_definitions(self.root)

    @cached_property
    def checked(self) -> CheckResult:
        """The definitions, checked against each other."""
        return check(self.definitions)

    @property
    def name(self) -> str:
        settings = self.definitions.settings
        return settings.name if settings is not None else self.root.name

    def validate(self, projects: Sequence[str] = ()) -> list[Problem]:
        """Returns every problem, in file order. With `projects`, leaves out problems that concern other projects
        only."""
        self._known_project(*projects)
        problems = sorted([*self.checked.problems, *self._scenario_problems()], key=file_order)
        return [problem for problem in problems if not projects or problem.project in (None, *projects)]

    def _scenario_problems(self) -> Iterable[Problem]:
        if not self.definitions.scenarios:
            return ()
        from tallybook.scenarios.check import check_scenarios

        return check_scenarios(self.checked)

    def plan(self, project: str, period: str, as_of: date | None = None) -> Plan:
        """Returns what a run would do: versions, locations and schemas. Writes nothing."""
        from tallybook.engine.plan import RunContext
        from tallybook.runs.planner import Planner
        from tallybook.runs.prepare import prepare

        recorded = self._recorded()
        prepared = prepare(self.definitions, recorded, project)
        prepared.check_valid()
        span = self.calendar.period(period)
        context = RunContext("plan", span, as_of or span.start_date, datetime.now(UTC), 0)
        state = prepared.changes.state(project)
        planner = Planner(self.definitions, recorded.registrations, self.sandbox)
        return planner.plan(prepared.fitting(), context, sandbox=state is None or state.status == "draft")

    def _recorded(self) -> Recorded:
        """Returns what the store has recorded of definitions; nothing if there is no store yet."""
        from tallybook.project.recorded import Recorded

        with self.existing_store() as store:
            return Recorded() if store is None else store.recorded()

    def refusal(self, project: str, period: str) -> Problem | None:
        """Returns why a run would be refused now; None if it would start. Writes nothing."""
        from tallybook.project.versions import changes
        from tallybook.runs.run_guard import check_may_run

        self._known_project(project)
        entry, calendar = self.definitions.projects[project], self.calendar
        after = changes(self._recorded(), self.definitions)
        with self.existing_store() as store:
            try:
                check_may_run(store, after, calendar, entry, period)
            except RunError as error:
                return error.problem
        return None

    def run(
        self,
        project: str,
        period: str,
        *,
        as_of: date | None = None,
        reopen_reason: str | None = None,
        again: bool = False,
        observers: Sequence[Observer] = (),
    ) -> RunResult:
        """Runs a project for a period. Raises RunError if the run fails. With `again` it appends once more what an
        earlier run has appended for the period."""
        with self.store() as store:
            runner = self._runner(store, observers)
            return runner.run(project, period, as_of=as_of, reopen_reason=reopen_reason, again=again)

    def retry(
        self,
        run_id: str,
        *,
        reopen_reason: str | None = None,
        again: bool = False,
        observers: Sequence[Observer] = (),
    ) -> RunResult:
        """Continues a failed or cancelled run. Outputs that it finished are not written again."""
        with self.store() as store:
            return self._runner(store, observers).retry(run_id, reopen_reason=reopen_reason, again=again)

    def apply(self, *, dry_run: bool = False) -> Changes:
        """Records the files: a changed definition becomes a new version. A dry run records nothing. Returns the
        changes."""
        from tallybook.project.versions import changes
        from tallybook.runs.prepare import apply

        if dry_run:
            return changes(self._recorded(), self.definitions)
        with self.store() as store:
            return apply(store, self.checked)

    def activate(self, project: str, *, stay_pinned: bool = False) -> ProjectState:
        """Activates a valid project. With `stay_pinned`, settles a conflict by staying on the pinned input."""
        from tallybook.runs.prepare import activate

        self._known_project(project)
        with self.store() as store:
            return store.stay_pinned(project) if stay_pinned else activate(store, self.definitions, project)

    def deactivate(self, project: str) -> ProjectState:
        """Takes an active project out of use. Its file may be gone."""
        with self.store() as store:
            if store.project_state(project) is None:
                self._known_project(project)
            return store.deactivate(project)

    def replay(self, run_id: str) -> Replay:
        """Executes a completed run again and compares every cell it wrote."""
        from tallybook.runs.replay import replay

        with self.store() as store:
            return replay(store, self.environment.session, run_id, self.calendar, self.environment.scratch)

    def first_rows(self, result: RunResult, count: int) -> Iterator[tuple[int, list[str]]]:
        """Yields the seq of each output of a run, and its first rows as lines of text."""
        from tallybook.runs.outputs import output_rows

        for output in result.outputs:
            yield output.seq, output_rows(self.session, result.plan, result.run, output, count)

    def runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        statuses: Sequence[RunStatus] = (),
        limit: int | None = None,
    ) -> RunList:
        """Returns recorded runs that meet all conditions, newest first. Refuses a project or period that does not
        exist."""
        from tallybook.runs.history import list_runs

        with self.existing_store() as store:
            listed = list_runs(store, project, period, statuses, limit)
        if not listed.runs:
            self._check_names(project, period)
        return listed

    def run_details(self, run_id: str) -> RunDetails:
        """One recorded run with its operations, outputs, events and snapshot."""
        from tallybook.runs.history import run_details

        with self.existing_store() as store:
            return run_details(store, run_id)

    def datasets(self) -> tuple[DatasetVersion, ...]:
        """The newest version of every recorded dataset."""
        from tallybook.runs.history import latest_datasets

        with self.existing_store() as store:
            return latest_datasets(store)

    def dataset_versions(self, dataset_id: str) -> tuple[DatasetVersion, ...]:
        """All recorded versions of a dataset, oldest first."""
        from tallybook.runs.history import dataset_versions

        with self.existing_store() as store:
            return dataset_versions(store, dataset_id)

    def periods(self) -> PeriodList:
        """The periods that were closed or locked."""
        from tallybook.documents.lifecycle import PeriodList

        with self.existing_store() as store:
            statuses = store.period_statuses(self.calendar.id) if store is not None else {}
        return PeriodList(calendar=self.calendar.id, periods=statuses)

    def period(self, identifier: str) -> PeriodState:
        """A period with its days and its status."""
        from tallybook.documents.lifecycle import PeriodState

        period, status = self.calendar.period(identifier), self.calendar.initial_status(identifier)
        with self.existing_store() as store:
            if store is not None:
                status = store.period_status(self.calendar.id, identifier, status)
        return PeriodState.of(self.calendar.id, period, status)

    def set_period_status(self, identifier: str, status: PeriodStatus) -> PeriodState:
        """Closes or locks a period; there is no way back."""
        from tallybook.documents.lifecycle import PeriodState

        period, initial = self.calendar.period(identifier), self.calendar.initial_status(identifier)
        with self.store() as store:
            new_status = store.set_period_status(self.calendar.id, identifier, status, initial)
        return PeriodState.of(self.calendar.id, period, new_status)

    def scenarios(self, paths: Sequence[Path] = (), text: str = "") -> list[Case]:
        """Returns the scenarios in these files or folders with this text in their name or file; by default all."""
        from tallybook.scenarios.check import choose_cases

        return choose_cases(self.checked, paths, text)

    def test(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Runs scenarios, and yields the outcome of each as soon as it is known."""
        from tallybook.scenarios.suite import judge_all, start_engine

        if cases:
            yield from judge_all(cases, start_engine(self.environment.spark_settings, warm=self.warm))

    def record_scenarios(self, outcomes: Sequence[Outcome]) -> None:
        """Writes the results of these scenarios into their files, as the expected rows."""
        from tallybook.scenarios.record import record

        problems = record(self.root, outcomes)
        if problems:
            raise ValidationError(problems)

    def start_session(self, idle_minutes: int) -> WarmSessionState:
        """Starts a warm session with the settings of the workspace, and waits until it takes commands."""
        from tallybook.documents.session import WarmSessionState
        from tallybook.engine.warm import start_warm

        return WarmSessionState.of(*start_warm(self.environment.spark_settings, idle_minutes))

    def sessions(self) -> WarmSessions:
        """The warm sessions of this user, of any settings."""
        from tallybook.documents.session import WarmSessions, WarmSessionState
        from tallybook.engine.warm import all_warm

        states = (WarmSessionState.of(*session) for session in all_warm(self.environment.spark_settings))
        return WarmSessions(sessions=tuple(states))

    def stop_sessions(self, *, all_sessions: bool = False, now: bool = False) -> StoppedSessions:
        """Stops the warm session of the workspace, or those of any settings. Raises SessionError if one is in use,
        unless `now`."""
        from tallybook.documents.session import StoppedSessions
        from tallybook.engine.warm import all_warm, stop_warm

        chosen = [found for found in all_warm(self.environment.spark_settings) if all_sessions or found[2]]
        return StoppedSessions.of(stop_warm(session, now=now) for session, *_ in chosen)

    @property
    def calendar(self) -> Calendar:
        """The calendar of the workspace. Raises ValidationError if the settings name one that does not exist."""
        from tallybook.runs.prepare import calendar_of

        return calendar_of(self.definitions)

    def upgrade_store(self) -> UpgradedStore:
        """Makes or migrates the tables of the store."""
        from tallybook.documents.lifecycle import UpgradedStore

        self.environment.upgrade_store()
        return UpgradedStore(upgraded=True)

    def join_store(self, *, new: bool = False) -> JoinedStore:
        """Makes this folder the workspace that has its name in the store, whatever its files define. With `new`, adds a
        new workspace of that name."""
        from tallybook.documents.lifecycle import JoinedStore

        self.environment.join_store(new=new)
        return JoinedStore(workspace=self.name)

    def rename_in_store(self, old: str) -> RenamedWorkspace:
        """Gives the workspace `old` of the store the name that the settings have now."""
        from tallybook.documents.lifecycle import RenamedWorkspace

        self.environment.rename_in_store(old)
        return RenamedWorkspace(workspace=self.name, old=old)

    @cached_property
    def environment(self) -> Environment:
        """The store, the Spark session and the folders."""
        from tallybook.runs.environment import Environment

        return Environment(self.definitions, self.warm)

    @property
    def session(self) -> SparkSession:
        """The active Spark session, else one started as the settings say."""
        return self.environment.session()

    @property
    def sandbox(self) -> Path:
        """The folder for outputs of drafts."""
        return self.environment.sandbox

    def store(self) -> Store:
        """Opens the metadata store. Close it, or use it in a `with`."""
        return self.environment.store()

    def existing_store(self) -> AbstractContextManager[Store | None]:
        """Opens the store to read it; None if there is none. Nothing is made or changed, so it may be read-only."""
        return self.environment.existing_store()

    def _runner(self, store: Store, observers: Sequence[Observer]) -> Runner:
        from tallybook.runs.runner import Runner

        return Runner(self.definitions, store, self.environment.session, self.sandbox, observers)

    def explain(self, expression: str, dataset_id: str) -> Explanation:
        """Explains an expression over the rows of a dataset."""
        from tallybook.project.explain import explain

        return explain(expression, self.scope_of(dataset_id))

    def scope_of(self, dataset_id: str) -> Scope:
        """Returns the columns that an expression over the rows of a dataset can read."""
        dataset = self.checked.datasets.find(DatasetRef.model_construct(dataset_id=dataset_id))
        if dataset is None:
            raise ValidationError(self.checked.problems)
        if isinstance(dataset, Problem):
            raise ValidationError([dataset])
        return working_schema(dataset, self.checked.datasets).scope()

    def counts(self) -> dict[str, int]:
        """Returns the number of definitions of each kind."""
        definitions = self.definitions
        return {
            "project": len(definitions.projects),
            "dataset": len(definitions.datasets),
            "resolver": len(definitions.resolvers),
            "datasource": len(definitions.datasources),
            "calendar": len(definitions.calendars),
            "scenario": len(definitions.scenarios),
        }

    def _check_names(self, project: str | None, period: str | None) -> None:
        """Refuses a project or period that does not exist."""
        if project is not None:
            self._known_project(project)
        if period is not None:
            self.calendar.period(period)

    def _known_project(self, *ids: str) -> None:
        missing = [self._no_project(id) for id in ids if id not in self.definitions.projects]
        if missing:
            raise ValidationError(missing)

    def _no_project(self, id: str) -> Problem:
        hint = did_you_mean(id, self.definitions.projects)
        return Problem("ProjectNotFound", f"there is no project '{id}' in workspace '{self.name}'", hint)
