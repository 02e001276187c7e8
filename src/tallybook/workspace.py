"""The use cases, a few lines each: what the command line, scripts and notebooks call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tallybook.errors import Problem, UsageError, ValidationError, did_you_mean
from tallybook.expressions.scope import Scope
from tallybook.model.dataset import DatasetRef
from tallybook.project.bind import working_schema
from tallybook.project.check import check, file_order
from tallybook.project.checked import Checked
from tallybook.project.load import SETTINGS_FILE, Definitions, find_root, load_definitions

LATER_CHECKS: tuple[Callable[[Checked], Iterable[Problem]], ...] = ()
"""Checks of documents that packages after `project` define, such as scenarios."""


@dataclass(frozen=True)
class Workspace:
    """A folder with a settings file and the definitions below it, as they stand when first read."""

    root: Path

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Workspace:
        """The workspace in a folder; without one, the nearest from the current folder upwards."""
        if folder is None:
            return cls(find_root(Path.cwd()))
        root = Path(folder).absolute()
        if not (root / SETTINGS_FILE).is_file():
            raise UsageError(
                f"'{folder}' is not a workspace: it has no {SETTINGS_FILE}", "make one with `tallybook init`"
            )
        return cls(root)

    @cached_property
    def definitions(self) -> Definitions:
        return load_definitions(self.root)

    @cached_property
    def checked(self) -> Checked:
        """The definitions, checked against each other."""
        return check(self.definitions)

    @property
    def name(self) -> str:
        settings = self.definitions.settings
        return settings.name if settings is not None else self.root.name

    def validate(self, projects: Sequence[str] = ()) -> list[Problem]:
        """Every problem, in file order; with `projects`, without what is wrong with other projects only."""
        missing = [self._no_project(id) for id in projects if id not in self.definitions.projects]
        if missing:
            raise ValidationError(missing)
        later = [problem for one in LATER_CHECKS for problem in one(self.checked)]
        problems = sorted([*self.checked.problems, *later], key=file_order)
        return [problem for problem in problems if not projects or problem.project in (None, *projects)]

    def columns_of(self, dataset_id: str) -> Scope:
        """What an expression over the rows of a dataset can read."""
        found = self.checked.catalog.find(DatasetRef.model_construct(dataset_id=dataset_id))
        if isinstance(found, Problem):
            raise ValidationError([found])
        return working_schema(found, self.checked.catalog).scope()

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

    def _no_project(self, id: str) -> Problem:
        hint = did_you_mean(id, self.definitions.projects)
        return Problem("ProjectNotFound", f"there is no project '{id}' in workspace '{self.name}'", hint)
