"""Records the files as versions, and activates projects."""

from __future__ import annotations

from tallybook.errors import ValidationError
from tallybook.model.state import ProjectState
from tallybook.project.check_result import CheckResult
from tallybook.project.load import Definitions
from tallybook.project.recorded import Changes, Recorded
from tallybook.project.versions import changes
from tallybook.runs.prepare import prepare
from tallybook.store.store import Store


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
