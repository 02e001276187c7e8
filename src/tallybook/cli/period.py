"""`period`: what a period is, and its status: open, closed, locked, one way."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say


@app.command()
def period(
    identifier: Annotated[str | None, typer.Argument(metavar="[PERIOD]", help="The period, such as 2026-01.")] = None,
    close: Annotated[bool, typer.Option("--close", help="Runs need a reason from now on.")] = False,
    lock: Annotated[bool, typer.Option("--lock", help="No more runs, ever; the period must be closed.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show a period and its status, close or lock it; without a period, list those that are not open."""
    from tallybook.errors import UsageError
    from tallybook.runs.planner import calendar_of
    from tallybook.workspace import Workspace

    if close and lock:
        raise UsageError("--close and --lock cannot both be given", "close it first, lock it later")
    opened = Workspace.open(workspace)
    calendar = calendar_of(opened.checked)
    with opened.store() as store:
        if identifier is None:
            statuses = store.period_statuses(calendar.id)
            if json:
                emit({"calendar": calendar.id, "periods": statuses})
                return
            for name, status in statuses.items():
                say(f"{name}  {status}")
            if not statuses:
                say(f"every period of calendar {calendar.id} is open")
            return
        found = calendar.period(identifier)
        initial = calendar.initial_status(identifier)
        wanted: Literal["closed", "locked"] | None = "closed" if close else "locked" if lock else None
        status = (
            store.set_period_status(calendar.id, identifier, wanted, initial)
            if wanted
            else store.period_status(calendar.id, identifier, initial)
        )
    if json:
        emit({"calendar": calendar.id, **found.model_dump(mode="json"), "status": status})
        return
    say(f"{found.identifier}  {found.level}  {found.start_date} to {found.end_date}  {status}")
