"""Refuses a run because of the status of its project or period, or because it would append rows twice."""

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
    """Raises RunError if a run may not start once the files are recorded. Records nothing.

    Returns what other runs have appended, or tried to, if this one appends too. With `again` that is no reason to
    refuse it.
    """
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
