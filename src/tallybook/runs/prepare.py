"""Prepares a project to run or be activated: checks it, records the files, and binds it to recorded dataset versions.

An active project reads the pinned version of its input. A project is bound once; the checker takes the bound project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tallybook.errors import Problem, ValidationError, did_you_mean
from tallybook.model.period import Calendar
from tallybook.model.state import ProjectState
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject, bind_project, pair_problems
from tallybook.project.check import check
from tallybook.project.check_result import CheckResult
from tallybook.project.load import Definitions, ProjectEntry
from tallybook.project.recorded import Changes, Recorded
from tallybook.project.versions import changes

if TYPE_CHECKING:
    from tallybook.store.store import Store


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
        """Raises ValidationError if the project has problems of its own. `fitting` checks it against its datasets,
        later: other reasons to refuse a run come first."""
        project_id = self.entry.head.id
        judged_later = self.checked.bound[project_id].problems
        about = [problem for problem in self.checked.problems if problem.project in (None, project_id)]
        wrong = [problem for problem in about if problem not in judged_later]
        if wrong:
            raise ValidationError(wrong)

    def after(self, saved: Changes) -> Prepared:
        """Returns the project after the changes are saved. It is bound again only if someone else recorded something in
        the meantime."""
        if saved.recorded == self.changes.recorded:
            return replace(self, changes=saved)
        return replace(self, changes=saved, bound=_bound(self.entry, saved, pinned=self.pinned))

    def fitting(self) -> BoundProject:
        """Returns the bound project. Raises ValidationError if it does not fit the recorded datasets."""
        problems = self.bound.problems or tuple(_unfit_lookups(self.bound))
        if problems:
            raise ValidationError(_explained(self.checked, problem) for problem in problems)
        return self.bound


def prepare(definitions: Definitions, recorded: Recorded, project_id: str, *, pinned: bool = True) -> Prepared:
    """Checks the workspace with one project bound to recorded versions. Without `pinned` the project reads the newest
    version of its input, even if it is active."""
    entry = definitions.projects.get(project_id)
    if entry is None:
        hint = did_you_mean(project_id, definitions.projects)
        raise ValidationError([Problem("ProjectNotFound", f"there is no project '{project_id}'", hint)])
    after = changes(recorded, definitions)
    bound = _bound(entry, after, pinned=pinned)
    return Prepared(check(definitions, bound={project_id: bound}), after, entry, bound, pinned)


def calendar_of(definitions: Definitions) -> Calendar:
    """Returns the calendar of the workspace. Raises ValidationError if the settings name one that does not exist."""
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
    """Yields problems of lookups into registered datasets, whose recorded columns can differ from the checked ones."""
    assert bound.input is not None
    used = {lookup.alias: lookup for step in bound.steps for lookup in step.lookups}
    for alias, lookup in used.items():
        for _, problem in pair_problems(bound.input.table, lookup):
            yield replace(problem, message=f"lookup '{alias}': {problem.message}").within(project=bound.head.id)


def _explained(checked: CheckResult, problem: Problem) -> Problem:
    """Returns the problem with a hint that names the project which has yet to register the missing dataset."""
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


def apply(store: Store, checked: CheckResult) -> Changes:
    """Records every file and returns the changes. Raises ValidationError if a definition other than a project is wrong:
    projects may be unfinished."""
    wrong = [problem for problem in checked.problems if problem.project is None]
    if wrong:
        raise ValidationError(wrong)

    def decide(recorded: Recorded) -> Changes:
        return changes(recorded, checked.definitions)

    return store.save(decide)


def activate(store: Store, definitions: Definitions, project_id: str) -> ProjectState:
    """Records the files and activates a valid project, pinned to the newest version of its input dataset."""
    prepared = prepare(definitions, store.recorded(), project_id, pinned=False)
    saved = apply(store, prepared.checked)
    prepared.check_valid()
    bound = prepared.after(saved).fitting()
    assert bound.input is not None, "a project without problems has its input"
    state = saved.state(project_id)
    assert state is not None, "recording gives every project a state"
    if state.status == "inactive":
        store.redraft(project_id)
    return store.activate(project_id, state.version, bound.input.dataset.version)
