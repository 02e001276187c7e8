"""The use cases that the command line, scripts and notebooks call, each in a few lines.

`base` opens a workspace, `records` looks things up, `running` runs a project, `many` runs many of them, and this module
has the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.errors import Problem, ValidationError
from tallybook.project.check import file_order
from tallybook.project.check_environments import check_other_environments
from tallybook.workspace.many import ManyRuns
from tallybook.workspace.records import WorkspaceRecords

if TYPE_CHECKING:
    from tallybook.model.state import ProjectState
    from tallybook.project.recorded import Changes
    from tallybook.scenarios.load import Case
    from tallybook.scenarios.suite import Outcome


@dataclass(frozen=True)
class Workspace(ManyRuns, WorkspaceRecords):
    """A folder with a settings file and the definitions below it, as they were when first read."""

    def validate(self, projects: Sequence[str] = ()) -> list[Problem]:
        """Returns every problem, in file order. With `projects`, leaves out problems that concern other projects
        only."""
        self._known_project(*projects)
        others = check_other_environments(self.checked)
        problems = sorted([*self.checked.problems, *others, *self._scenario_problems()], key=file_order)
        return [problem for problem in problems if not projects or problem.project in (None, *projects)]

    def _scenario_problems(self) -> Iterable[Problem]:
        if not self.definitions.scenarios:
            return ()
        from tallybook.scenarios.check import check_scenarios

        return check_scenarios(self.checked)

    def apply(self, *, dry_run: bool = False) -> Changes:
        """Records the files: a changed definition becomes a new version. A dry run records nothing. Returns the
        changes, and the problems of definitions that are left out."""
        from tallybook.runs.prepare import apply, recordable

        if dry_run:
            return recordable(self.checked)(self._recorded())
        with self.store() as store:
            return apply(store, self.checked)

    def activate(self, project: str, *, stay_pinned: bool = False, reason: str | None = None) -> ProjectState:
        """Activates a valid project. With `stay_pinned`, settles a conflict by staying on the pinned input. Who did it
        and the reason are kept."""
        from tallybook.runs.prepare import activate

        self._known_project(project)
        with self.store() as store:
            if stay_pinned:
                return store.stay_pinned(project, reason)
            return activate(store, self.definitions, project, reason)

    def deactivate(self, project: str, *, reason: str | None = None) -> ProjectState:
        """Takes an active project out of use. Its file may be gone. Who did it and the reason are kept."""
        with self.store() as store:
            if store.project_state(project) is None:
                self._known_project(project)
            return store.deactivate(project, reason)

    def scenarios(self, paths: Sequence[Path] = (), text: str = "") -> list[Case]:
        """Returns the scenarios in these files or folders with this text in their name or file; by default all."""
        from tallybook.scenarios.check import choose_cases

        return choose_cases(self.checked, paths, text)

    def test(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Runs scenarios, and yields the outcome of each as soon as it is known."""
        from tallybook.scenarios.suite import judge_all, start_engine

        if cases:
            yield from judge_all(cases, start_engine(self.resources.spark_settings, warm=self.warm))

    def record_scenarios(self, outcomes: Sequence[Outcome]) -> None:
        """Writes the results of these scenarios into their files, as the expected rows."""
        from tallybook.scenarios.record import record

        problems = record(self.root, outcomes)
        if problems:
            raise ValidationError(problems)
