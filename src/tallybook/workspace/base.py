"""A workspace on disk: its definitions, its store and its Spark session. The use cases are built on it."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tallybook.errors import UsageError, ValidationError
from tallybook.project.check import check
from tallybook.project.check_result import CheckResult
from tallybook.project.files import ENVIRONMENT_VARIABLE, SETTINGS_FILE, has_settings
from tallybook.project.load import Definitions, find_root, load_definitions
from tallybook.project.unread import missing_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tallybook.model.period import Calendar
    from tallybook.project.recorded import Recorded
    from tallybook.runs.resources import WorkspaceResources
    from tallybook.store.store import Store

_log = logging.getLogger("tallybook.workspace")
"""Says which environment a command uses. The command line prints it."""


@dataclass(frozen=True)
class WorkspaceBase:
    """A folder with a settings file and the definitions below it, as they were when first read."""

    root: Path
    warm: bool = False
    """Whether runs and tests use the warm session, if it runs."""
    environment: str | None = None
    """The environment of `tallybook.yaml` whose settings, datasources and recorded state are used."""

    @classmethod
    def open(cls, folder: Path | str | None = None, *, warm: bool = False, environment: str | None = None) -> Self:
        """Opens the workspace in a folder; by default the nearest one from the current folder upwards.

        Its root is the resolved path: the store compares locations by their paths. The environment is by default the
        one that the variable `TALLYBOOK_ENV` names.
        """
        environment = environment or os.environ.get(ENVIRONMENT_VARIABLE) or None
        if environment is not None:
            _log.info("environment: %s", environment)
        if folder is None:
            return cls(find_root(Path.cwd()), warm, environment)
        root = Path(folder).resolve()
        if not has_settings(root):
            what = f"it has no {SETTINGS_FILE}" if root.is_dir() else "there is no such folder"
            above = next((parent for parent in root.parents if has_settings(parent)), None)
            hint = f"the workspace is '{above}'" if above else "create one with `tallybook init`"
            raise UsageError(f"'{folder}' is not a workspace: {what}", hint)
        return cls(root, warm, environment)

    @cached_property
    def definitions(self) -> Definitions:
        return load_definitions(self.root, self.environment)

    @cached_property
    def checked(self) -> CheckResult:
        """The definitions, checked against each other."""
        return check(self.definitions)

    @property
    def name(self) -> str:
        settings = self.definitions.settings
        return settings.name if settings is not None else self.root.name

    @property
    def calendar(self) -> Calendar:
        """The calendar of the workspace. Raises ValidationError if the settings name one that does not exist."""
        from tallybook.runs.prepare import calendar_of

        return calendar_of(self.definitions)

    @cached_property
    def resources(self) -> WorkspaceResources:
        """The store, the Spark session and the folders."""
        from tallybook.runs.resources import WorkspaceResources

        return WorkspaceResources(self.definitions, self.warm)

    @property
    def session(self) -> SparkSession:
        """The active Spark session, else one started as the settings say."""
        return self.resources.session()

    @property
    def sandbox(self) -> Path:
        """The folder for outputs of drafts."""
        return self.resources.sandbox

    def store(self) -> Store:
        """Opens the metadata store. Close it, or use it in a `with`."""
        return self.resources.store()

    def existing_store(self) -> AbstractContextManager[Store | None]:
        """Opens the store to read it; None if there is none. Nothing is made or changed, so it may be read-only."""
        return self.resources.existing_store()

    def full_id(self, beginning: str) -> str:
        """Returns the id of the run or batch that begins with the text; the text itself if there is none. Every use
        case that takes the id of a run or batch takes its beginning, too. Raises RunNotFound if there are several."""
        return self.resources.full_id(beginning)

    def in_environment_of(self, run_id: str) -> Self:
        """Returns the workspace in the environment of a run, which may be another one in the same store."""
        environment = self.resources.environment_of(run_id)
        return self if environment == self.environment else replace(self, environment=environment)

    def _recorded(self) -> Recorded:
        """Returns what the store has recorded of definitions; nothing if there is no store yet."""
        from tallybook.project.recorded import Recorded

        with self.existing_store() as store:
            return Recorded() if store is None else store.recorded()

    def _check_names(self, project: str | None, period: str | None) -> None:
        """Refuses a project or period that does not exist."""
        if project is not None:
            self._known_project(project)
        if period is not None:
            self.calendar.period(period)

    def _known_project(self, *ids: str) -> None:
        definitions, where = self.definitions, f" in workspace '{self.name}'"
        unknown = [id for id in ids if id not in definitions.projects]
        if unknown:
            missing = (missing_project(id, definitions.projects, definitions.unread, where) for id in unknown)
            raise ValidationError(problem for problems in missing for problem in problems)
