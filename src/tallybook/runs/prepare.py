"""From the files and what the store knows to a project that can be planned: checked, and bound once.

A run uses recorded versions of datasets, and an active project the version of its input that it is pinned to. So the
project is bound to these, and the checker takes it as it is bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tallybook.errors import Problem, ValidationError, did_you_mean
from tallybook.model.period import Calendar
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject, bind_project, pair_problems
from tallybook.project.check import check
from tallybook.project.check_result import CheckResult
from tallybook.project.load import Definitions, ProjectEntry
from tallybook.project.recorded import Changes, Recorded
from tallybook.project.versions import changes


@dataclass(frozen=True)
class Prepared:
    """A project of a checked workspace, bound to the dataset versions that a run would use."""

    checked: CheckResult
    changes: Changes
    """What recording the files changes."""
    entry: ProjectEntry
    bound: BoundProject
    pinned: bool

    def check_valid(self) -> None:
        """Raises ValidationError if the project has problems of its own. How it fits its datasets is not judged here:
        a run can be refused for other reasons first."""
        project_id = self.entry.head.id
        judged_later = self.checked.bound[project_id].problems
        about = [problem for problem in self.checked.problems if problem.project in (None, project_id)]
        wrong = [problem for problem in about if problem not in judged_later]
        if wrong:
            raise ValidationError(wrong)

    def after(self, saved: Changes) -> Prepared:
        """The same once the changes are saved. It is bound again only if others have recorded something meanwhile."""
        if saved.recorded == self.changes.recorded:
            return replace(self, changes=saved)
        return replace(self, changes=saved, bound=_bound(self.entry, saved, pinned=self.pinned))

    def fitting(self) -> BoundProject:
        """The bound project; ValidationError if it does not fit the datasets that the store knows."""
        problems = self.bound.problems or tuple(_unfit_lookups(self.bound))
        if problems:
            raise ValidationError(_explained(self.checked, problem) for problem in problems)
        return self.bound


def prepare(definitions: Definitions, recorded: Recorded, project_id: str, *, pinned: bool = True) -> Prepared:
    """Checks the workspace with one project bound to recorded versions. Without `pinned` its input is the newest
    version, also if the project is active."""
    entry = definitions.projects.get(project_id)
    if entry is None:
        hint = did_you_mean(project_id, definitions.projects)
        raise ValidationError([Problem("ProjectNotFound", f"there is no project '{project_id}'", hint)])
    after = changes(recorded, definitions)
    bound = _bound(entry, after, pinned=pinned)
    return Prepared(check(definitions, bound={project_id: bound}), after, entry, bound, pinned)


def calendar_of(definitions: Definitions) -> Calendar:
    """The workspace's calendar; ValidationError when the settings name one that does not exist."""
    if definitions.calendar is None:
        raise ValidationError(problem for problem in check(definitions).problems if problem.project is None)
    return definitions.calendar


def _bound(entry: ProjectEntry, after: Changes, *, pinned: bool) -> BoundProject:
    state = after.state(entry.head.id)
    update: dict[str, object] = {"version": state.version if state else 1}
    if pinned and state is not None and state.input_dataset_version is not None:
        update["input_dataset_version"] = state.input_dataset_version
    head = entry.head.model_copy(update=update)
    return bind_project(head, entry.operations, after.datasets, entry.part)


def _unfit_lookups(bound: BoundProject) -> Iterator[Problem]:
    """A registered dataset may have other columns in the store than those its readers' lookups were checked with."""
    assert bound.input is not None
    used = {lookup.alias: lookup for step in bound.steps for lookup in step.lookups}
    for alias, lookup in used.items():
        for _, problem in pair_problems(bound.input.table, lookup):
            yield replace(problem, message=f"lookup '{alias}': {problem.message}").within(project=bound.head.id)


def _explained(checked: CheckResult, problem: Problem) -> Problem:
    """A dataset the checker knew and the store does not is one that a project has yet to register."""
    if problem.type != "DatasetNotFound" or problem.subject is None:
        return problem
    makers = [
        f"`tallybook run {id}`"
        for id, bound in checked.bound.items()
        for output in publications(bound.steps)
        if output.register_as == problem.subject
    ]
    hint = f"it is registered by {' or '.join(makers)}, once that project is active" if makers else problem.hint
    return replace(problem, hint=hint)
