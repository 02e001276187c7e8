"""Whether a run would be refused, asked without starting one."""

from __future__ import annotations

from tallybook.errors import Problem, RunError
from tallybook.model.period import Calendar
from tallybook.model.state import ProjectState
from tallybook.project.checked import Checked
from tallybook.project.lifecycle import check_period_runs, check_project_runs
from tallybook.runs.appended import EarlierAppends, append_outputs, earlier_appends
from tallybook.runs.apply import differences
from tallybook.runs.conflicts import conflicts_of
from tallybook.runs.recording import body_of, previewed_datasets, previewed_state
from tallybook.store.store import Store


def refusal(store: Store | None, checked: Checked, calendar: Calendar, project_id: str, period: str) -> Problem | None:
    """What a run would say first, once it has recorded the files; None when it would start."""
    try:
        check_would_run(store, checked, calendar, project_id, period)
    except RunError as error:
        return error.problem
    return None


def check_would_run(
    store: Store | None,
    checked: Checked,
    calendar: Calendar,
    project_id: str,
    period: str,
    *,
    reopen_reason: str | None = None,
    again: bool = False,
) -> EarlierAppends:
    """Raises the problem a run would be refused with; records nothing. Returns what other runs have appended, or tried
    to, where this one would append too; with `again` that is no reason to refuse it."""
    status = calendar.initial_status(period)
    if store is None:
        check_period_runs(period, status, reopen_reason)
        return EarlierAppends()
    state = _state_after(store, checked, project_id)
    if state is not None:
        check_project_runs(project_id, state.status, state.conflicts)
    check_period_runs(period, store.period_status(calendar.id, period, status), reopen_reason)
    project = checked.definitions.projects[project_id].project
    if state is None or state.status != "active" or project is None or not append_outputs(body_of(project)):
        return EarlierAppends()
    earlier = earlier_appends(store, project_id, period)
    if earlier.problem is not None and not again:
        raise RunError([earlier.problem])
    return earlier


def _state_after(store: Store, checked: Checked, project_id: str) -> ProjectState | None:
    """The state of a project after recording the files, conflicts with changed datasets included."""
    recorded = store.project_state(project_id)
    state = previewed_state(store, checked.definitions, project_id)
    if recorded is None or state is None or state.status != "active":
        return state
    changed = {each.id: each.version for each in differences(store, checked) if each.kind == "dataset"}
    catalog = previewed_datasets(store, checked.definitions).catalog
    conflicts = conflicts_of(store, recorded, catalog, changed)
    return state.model_copy(update={"status": "conflict", "conflicts": conflicts}) if conflicts else state
