"""The use cases, a few lines each: what the command line, scripts and notebooks call."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.errors import Problem, RunError, UsageError, ValidationError, did_you_mean
from tallybook.expressions.scope import Scope
from tallybook.model.dataset import DatasetRef
from tallybook.private import close_folder, make_private_folder
from tallybook.project.bind import working_schema
from tallybook.project.check import check, file_order
from tallybook.project.check_result import CheckResult
from tallybook.project.files import SETTINGS_FILE, has_settings
from tallybook.project.load import Definitions, find_root, load_definitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tallybook.engine.events import Observer
    from tallybook.engine.plan import Plan
    from tallybook.model.state import ProjectState
    from tallybook.project.recorded import Changes, Recorded
    from tallybook.runs.replay import Replay
    from tallybook.runs.runner import Runner, RunResult
    from tallybook.store.store import Store
    from tallybook.store.workspaces import WorkspaceRef

PRIVATE = ".tallybook"
"""The folder of a workspace that belongs to the product."""


@dataclass(frozen=True)
class Workspace:
    """A folder with a settings file and the definitions below it, as they stand when first read."""

    root: Path

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Workspace:
        """The workspace in a folder; without one, the nearest from the current folder upwards.

        Its root has one spelling, however the folder was named: the store knows places by their paths.
        """
        if folder is None:
            return cls(find_root(Path.cwd()))
        root = Path(folder).resolve()
        if not has_settings(root):
            raise UsageError(
                f"'{folder}' is not a workspace: it has no {SETTINGS_FILE}", "make one with `tallybook init`"
            )
        return cls(root)

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
        """Every problem, in file order; with `projects`, without what is wrong with other projects only."""
        self._known_project(*projects)
        problems = sorted([*self.checked.problems, *self._scenario_problems()], key=file_order)
        return [problem for problem in problems if not projects or problem.project in (None, *projects)]

    def _scenario_problems(self) -> Iterable[Problem]:
        if not self.definitions.scenarios:
            return ()
        from tallybook.scenarios.check import check_scenarios

        return check_scenarios(self.checked)

    def plan(self, project: str, period: str, as_of: date | None = None) -> Plan:
        """What a run would do: versions, places and schemas. Writes nothing."""
        from tallybook.engine.context import RunContext
        from tallybook.runs.planner import Planner
        from tallybook.runs.prepare import calendar_of, prepare

        recorded = self._recorded()
        prepared = prepare(self.definitions, recorded, project)
        prepared.check_valid()
        span = calendar_of(self.definitions).period(period)
        context = RunContext("plan", span, as_of or span.start_date, datetime.now(UTC), 0)
        state = prepared.changes.state(project)
        planner = Planner(self.definitions, recorded.registrations, self.sandbox)
        return planner.plan(prepared.fitting(), context, sandbox=state is None or state.status == "draft")

    def _recorded(self) -> Recorded:
        """What the store knows of definitions; nothing if there is no store yet."""
        from tallybook.project.recorded import Recorded

        with self.existing_store() as store:
            return Recorded() if store is None else store.recorded()

    def refusal(self, project: str, period: str) -> Problem | None:
        """Why a run would be refused as things stand: the project's state, or the period's. Writes nothing."""
        from tallybook.project.versions import changes
        from tallybook.runs.prepare import calendar_of
        from tallybook.runs.run_guard import check_may_run

        self._known_project(project)
        entry, calendar = self.definitions.projects[project], calendar_of(self.definitions)
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
        """Runs a project for a period; RunError says what went wrong. With `again` it appends once more what an
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
        """Continues a failed or cancelled run; outputs it finished are not written again."""
        with self.store() as store:
            return self._runner(store, observers).retry(run_id, reopen_reason=reopen_reason, again=again)

    def apply(self, *, dry_run: bool = False) -> Changes:
        """Records the files; what changed becomes a new version. A dry run only says what would."""
        from tallybook.project.versions import changes
        from tallybook.runs.apply import apply

        if dry_run:
            return changes(self._recorded(), self.definitions)
        with self.store() as store:
            return apply(store, self.checked)

    def activate(self, project: str, *, stay_pinned: bool = False) -> ProjectState:
        """Makes a valid project count; with `stay_pinned` settles a conflict by staying on the pinned input."""
        from tallybook.runs.apply import activate

        self._known_project(project)
        with self.store() as store:
            return store.stay_pinned(project) if stay_pinned else activate(store, self.definitions, project)

    def deactivate(self, project: str) -> ProjectState:
        """Takes an active project out of use, also one whose file is gone."""
        with self.store() as store:
            if store.project_state(project) is None:
                self._known_project(project)
            return store.deactivate(project)

    def replay(self, run_id: str) -> Replay:
        """Executes a completed run again and compares every cell it wrote."""
        from tallybook.runs.prepare import calendar_of
        from tallybook.runs.replay import replay

        with self.store() as store:
            scratch = self.root / PRIVATE / "scratch"
            return replay(store, lambda: self.session, run_id, calendar_of(self.definitions), scratch)

    @property
    def session(self) -> SparkSession:
        """The active Spark session, else one started as the settings say."""
        from tallybook.engine.session import get_session

        settings = self.definitions.settings
        return get_session(
            settings.spark if settings else None, log_dir=self._log_folder(), logs=settings.logs if settings else None
        )

    def store(self) -> Store:
        """The metadata store, ready for use; close it, or use it in a `with`."""
        from tallybook.store.store import Store

        setting = self.store_setting
        with suppress(OSError):
            self._private_folder()
        return Store.open(setting, self.root, workspace=self._reference(setting))

    def join_store(self, *, new: bool = False) -> None:
        """Makes this folder the workspace that has its name in the store, whatever its files define; with `new`, begins
        a new workspace of that name."""
        from tallybook.store.store import Store

        with Store.at(self.store_setting, self.root) as store:
            store.ensure_current()
            store.join(self._reference(self.store_setting), new=new)

    def rename_in_store(self, old: str) -> None:
        """Gives the workspace `old` of the store the name that the settings have now."""
        from tallybook.store.store import Store

        with Store.at(self.store_setting, self.root) as store:
            store.ensure_current()
            store.rename(old, self._reference(self.store_setting))

    def _reference(self, setting: str | None) -> WorkspaceRef:
        """This workspace, as a store recognises it."""
        from tallybook.project.recorded import content_hash
        from tallybook.project.versions import bodies
        from tallybook.store.url import store_url
        from tallybook.store.workspaces import WorkspaceRef

        url = store_url(setting, self.root, os.environ)
        return WorkspaceRef(
            name=self._recorded_name,
            host=socket.gethostname(),
            root=self.root,
            owns_store=url.get_backend_name() == "sqlite" and self._contains(Path(str(url.database))),
            contents=lambda: {(kind, id, content_hash(body)) for kind, id, body in bodies(self.definitions)},
        )

    def _contains(self, file: Path) -> bool:
        """True if the file is in this workspace, and not in another one inside it."""
        file, root = file.resolve(), self.root.resolve()
        return file.is_relative_to(root) and find_root(file.parent) == root

    def _recorded_name(self) -> str:
        """The name in the settings; ValidationError without one. The name of the folder would be another workspace."""
        if self.definitions.settings is None:
            raise ValidationError(self._settings_problems())
        return self.definitions.settings.name

    def _settings_problems(self) -> list[Problem]:
        problems = self.definitions.problems
        return [problem for problem in problems if problem.place and problem.place.file == SETTINGS_FILE]

    def _log_folder(self) -> Path | None:
        """The folder of Spark's logs; None where nothing can be written in the workspace, which may be looked at."""
        with suppress(OSError):
            folder = self._private_folder()
            if os.access(folder, os.W_OK):
                return folder / "logs"
        return None

    def _private_folder(self) -> Path:
        """The folder that belongs to the product, readable by its owner only."""
        folder = make_private_folder(self.root / PRIVATE)
        close_folder(folder)
        return folder

    @property
    def store_setting(self) -> str | None:
        """The `store` of the settings. Which one is meant cannot be told from settings with a mistake: ValidationError,
        for another store would know nothing of what was run and closed."""
        from tallybook.store.url import URL_VARIABLE

        if os.environ.get(URL_VARIABLE):
            return None
        if wrong := self._settings_problems():
            raise ValidationError(wrong)
        settings = self.definitions.settings
        return settings.store if settings is not None else None

    @property
    def sandbox(self) -> Path:
        """Where outputs of drafts go."""
        settings = self.definitions.settings
        return self.root / (settings.sandbox if settings else f"{PRIVATE}/sandbox")

    def _runner(self, store: Store, observers: Sequence[Observer]) -> Runner:
        from tallybook.runs.runner import Runner

        return Runner(self.definitions, store, lambda: self.session, self.sandbox, observers)

    @contextmanager
    def existing_store(self) -> Iterator[Store | None]:
        """The store to look at, None if there is none. It is neither made nor changed, so it may be read-only."""
        from tallybook.store.store import Store

        setting = self.store_setting
        store = Store.look(setting, self.root, workspace=self._reference(setting))
        if store is None:
            yield None
            return
        with store:
            yield store

    def scope_of(self, dataset_id: str) -> Scope:
        """What an expression over the rows of a dataset can read."""
        found = self.checked.datasets.find(DatasetRef.model_construct(dataset_id=dataset_id))
        if found is None:
            raise ValidationError(self.checked.problems)
        if isinstance(found, Problem):
            raise ValidationError([found])
        return working_schema(found, self.checked.datasets).scope()

    def counts(self) -> dict[str, int]:
        """How many documents of each kind there are."""
        found = self.definitions
        return {
            "project": len(found.projects),
            "dataset": len(found.datasets),
            "resolver": len(found.resolvers),
            "datasource": len(found.datasources),
            "calendar": len(found.calendars),
            "scenario": len(found.scenarios),
        }

    def check_names(self, project: str | None, period: str | None) -> None:
        """Refuses a project or period that does not exist; nothing to refuse about one not named."""
        from tallybook.runs.prepare import calendar_of

        if project is not None:
            self._known_project(project)
        if period is not None:
            calendar_of(self.definitions).period(period)

    def _known_project(self, *ids: str) -> None:
        missing = [self._no_project(id) for id in ids if id not in self.definitions.projects]
        if missing:
            raise ValidationError(missing)

    def _no_project(self, id: str) -> Problem:
        hint = did_you_mean(id, self.definitions.projects)
        return Problem("ProjectNotFound", f"there is no project '{id}' in workspace '{self.name}'", hint)
