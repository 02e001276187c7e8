"""Prepares a project to run or be activated: checks it, records the files, and binds it to recorded dataset versions.

An active project reads the pinned version of its input. A project is bound once; the checker takes the bound project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tallybook.errors import Problem, ValidationError
from tallybook.model.period import Calendar
from tallybook.model.state import ProjectState
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject, bind_project, pair_problems
from tallybook.project.check import check, file_order, missing_calendar
from tallybook.project.check_result import CheckResult
from tallybook.project.files import SETTINGS_FILE
from tallybook.project.load import Definitions, ProjectEntry
from tallybook.project.needs import concerning, needs_of, without_problems
from tallybook.project.recorded import Changes, Recorded
from tallybook.project.unread import missing_project
from tallybook.project.versions import changes
from tallybook.runs.sandbox import NOTHING, SandboxDatasets

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
    sandbox: SandboxDatasets = NOTHING
    """What a draft can read of other drafts."""

    def check_valid(self) -> None:
        """Raises ValidationError if the project has problems of its own. `fitting` checks it against its datasets,
        later: other reasons to refuse a run come first."""
        judged_later = self.checked.bound[self.entry.head.id].problems
        wrong = [problem for problem in self._concerning() if problem not in judged_later]
        if wrong:
            raise ValidationError(sorted(wrong, key=file_order))

    def _concerning(self) -> list[Problem]:
        registered = {entry.dataset_id for entry in self.changes.recorded.registrations} | self.sandbox.by_id.keys()
        definitions = self.checked.definitions
        needs = needs_of(self.entry, self.bound, definitions, registered, draft=self.sandbox.for_draft)
        return concerning(self.checked, self.entry, needs)

    def after(self, saved: Changes) -> Prepared:
        """Returns the project after the changes are saved. It is bound again only if someone else recorded something in
        the meantime."""
        if saved.recorded == self.changes.recorded:
            return replace(self, changes=saved)
        return replace(self, changes=saved, bound=_bound(self.entry, saved, self.sandbox, pinned=self.pinned))

    def fitting(self) -> BoundProject:
        """Returns the bound project. Raises ValidationError if it does not fit the recorded datasets."""
        problems = self.bound.problems or tuple(_unfit_lookups(self.bound))
        if problems:
            raise ValidationError(_explained(self.checked, problem) for problem in problems)
        return self.bound


def prepare(
    definitions: Definitions,
    recorded: Recorded,
    project_id: str,
    *,
    pinned: bool = True,
    find_sandbox: Callable[[Changes], SandboxDatasets] = lambda _after: NOTHING,
) -> Prepared:
    """Checks the workspace with one project bound to recorded versions. Without `pinned` the project reads the newest
    version of its input, even if it is active. `find_sandbox` finds what drafts registered, for a draft to read."""
    entry = definitions.projects.get(project_id)
    if entry is None:
        raise ValidationError(missing_project(project_id, definitions.projects, definitions.unread))
    after = changes(recorded, definitions)
    sandbox = find_sandbox(after)
    bound = _bound(entry, after, sandbox, pinned=pinned)
    return Prepared(check(definitions, bound={project_id: bound}), after, entry, bound, pinned, sandbox)


def calendar_of(definitions: Definitions) -> Calendar:
    """Returns the calendar of the workspace. Raises ValidationError if the settings name one that does not exist."""
    if definitions.calendar is None:
        raise ValidationError(missing_calendar(definitions))
    return definitions.calendar


def _bound(entry: ProjectEntry, after: Changes, sandbox: SandboxDatasets, *, pinned: bool) -> BoundProject:
    state = after.state(entry.head.id)
    update: dict[str, object] = {"version": state.version if state else 1}
    pinned = pinned and entry.head.input_dataset_id not in sandbox.by_id
    if pinned and state is not None and state.input_dataset_version is not None:
        update["input_dataset_version"] = state.input_dataset_version
    head = entry.head.model_copy(update=update)
    datasets = sandbox.added_to(after.datasets)
    return bind_project(
        head, entry.operations, datasets, entry.part, pinned=entry.head.input_dataset_version is not None
    )


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
    broken = dict.fromkeys(file.file for file in checked.definitions.unread if file.mentions(problem.subject))
    makers = [
        f"`tallybook run {id}`"
        for id, bound in checked.bound.items()
        for output in publications(bound.steps)
        if output.register_as == problem.subject
    ]
    known = f"{' or '.join(makers)} registers it; an active project reads only what active projects register"
    hint = known if makers else problem.hint
    if broken:
        hint = f"it may be defined or registered in {', '.join(broken)}, which cannot be read; see `tallybook validate`"
    return replace(problem, hint=hint)


def apply(store: Store, checked: CheckResult) -> Changes:
    """Records every definition without problems and returns the changes, with the problems of those left out. Projects
    may be unfinished. Raises ValidationError if the settings are wrong."""
    decide = recordable(checked)
    return store.save(decide)


def recordable(checked: CheckResult) -> Callable[[Recorded], Changes]:
    """Returns the function that decides what recording the files changes. Raises ValidationError if the settings are
    wrong: they decide what the definitions mean."""
    wrong = [problem for problem in checked.problems if problem.place and problem.place.file == SETTINGS_FILE]
    if wrong:
        raise ValidationError(wrong)
    definitions, left_out = without_problems(checked)

    def decide(recorded: Recorded) -> Changes:
        return replace(changes(recorded, definitions), left_out=tuple(left_out))

    return decide


def activate(store: Store, definitions: Definitions, project_id: str, reason: str | None = None) -> ProjectState:
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
    return store.activate(project_id, state.version, bound.input.dataset.version, reason)
