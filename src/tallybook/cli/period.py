"""`period`: what a period is, and its status: open, closed, locked, one way."""

from __future__ import annotations

from typing import Annotated

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
    from tallybook.runs.prepare import calendar_of
    from tallybook.workspace import Workspace

    if close and lock:
        raise UsageError("--close and --lock cannot both be given", "close it first, lock it later")
    if identifier is None and (close or lock):
        raise UsageError("no period is given", f"tallybook period 2026-01 {'--close' if close else '--lock'}")
    opened = Workspace.open(workspace)
    calendar = calendar_of(opened.definitions)
    if identifier is None:
        with opened.existing_store() as store:
            statuses = store.period_statuses(calendar.id) if store is not None else {}
        if json:
            emit({"calendar": calendar.id, "periods": statuses})
            return
        for name, changed in statuses.items():
            say(f"{name}  {changed}")
        if not statuses:
            say(f"every period of calendar {calendar.id} is as the calendar has it: none was closed or locked")
        return
    found = calendar.period(identifier)
    status = calendar.initial_status(identifier)
    if close or lock:
        with opened.store() as store:
            status = store.set_period_status(calendar.id, identifier, "closed" if close else "locked", status)
    else:
        with opened.existing_store() as recorded:
            status = recorded.period_status(calendar.id, identifier, status) if recorded is not None else status
    if json:
        emit({"calendar": calendar.id, **found.model_dump(mode="json"), "status": status})
        return
    say(f"{found.identifier}  {found.level}  {found.start_date} to {found.end_date}  {status}")
