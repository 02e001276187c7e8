"""Checks that a run may still write, directly before each publish, commit and registration."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from tallybook.errors import RunError, fail
from tallybook.model.run import Run
from tallybook.project.lifecycle import check_period_runs, check_project_runs
from tallybook.store.active import get_run
from tallybook.store.periods import changed_status
from tallybook.store.projects import known_project


def check_may_write(connection: sa.Connection, run: Run) -> None:
    """Raises RunError unless the caller still owns the run, the period is still open to it, and the project has the
    status it had when the run began."""
    current = get_run(connection, run.id)
    if current.attempt != run.attempt:
        raise _superseded(run, f"attempt {current.attempt} ({current.owner}) has taken it over")
    if not current.is_active:
        raise _superseded(run, f"it is recorded as {current.status}")
    try:
        changed = changed_status(connection, run.workspace_id, run.calendar_id, run.period)
        if changed is not None:
            check_period_runs(run.period, changed, current.reopen_reason)
        check_project_as_begun(connection, run)
    except RunError as error:
        problem = error.problem
        message = f"run {run.id} stops before it writes anything more: {problem.message}"
        raise RunError([replace(problem, message=message)]) from None


def check_project_as_begun(connection: sa.Connection, run: Run) -> None:
    """Refuses a run whose project no longer has the status it had when the run began."""
    state = known_project(connection, run.workspace_id, run.project_id)
    check_project_runs(run.project_id, state.status, state.conflicts)
    if state.status != run.project_status:
        raise fail(
            "ProjectNotRunnable",
            f"project '{run.project_id}' is {state.status} now and was {run.project_status} when run {run.id} began",
            hint=f"start a new run: `tallybook run {run.project_id} --period {run.period}`",
            project=run.project_id,
        )


def _superseded(run: Run, why: str) -> RunError:
    return fail(
        "RunSuperseded",
        f"run {run.id} may not write any more: {why}",
        hint="a process without a heartbeat for five minutes counts as dead; `tallybook runs` shows what happened "
        "since",
        project=run.project_id,
    )
