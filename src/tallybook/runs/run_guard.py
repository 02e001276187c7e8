"""Refuses a run that may not start: the project's state, the period's, or rows that would be appended twice."""

from __future__ import annotations

from tallybook.errors import RunError
from tallybook.model.period import Calendar
from tallybook.project.lifecycle import check_period_runs, check_project_runs
from tallybook.project.load import ProjectEntry
from tallybook.project.recorded import Changes, body_of
from tallybook.runs.appended import EarlierAppends, append_outputs, earlier_appends
from tallybook.store.store import Store


def check_may_run(
    store: Store | None,
    after: Changes,
    calendar: Calendar,
    entry: ProjectEntry,
    period: str,
    *,
    reopen_reason: str | None = None,
    again: bool = False,
) -> EarlierAppends:
    """Raises the problem a run would be refused with once the files are recorded; records nothing itself. Returns what
    other runs have appended, or tried to, where this one would append too; with `again` that is no reason to refuse
    it."""
    status = calendar.initial_status(period)
    state = after.state(entry.head.id)
    if state is not None:
        check_project_runs(entry.head.id, state.status, state.conflicts)
    if store is None:
        check_period_runs(period, status, reopen_reason)
        return EarlierAppends()
    check_period_runs(period, store.period_status(calendar.id, period, status), reopen_reason)
    project = entry.project
    if state is None or state.status != "active" or project is None or not append_outputs(body_of(project)):
        return EarlierAppends()
    earlier = earlier_appends(store, entry.head.id, period)
    if earlier.problem is not None and not again:
        raise RunError([earlier.problem])
    return earlier
