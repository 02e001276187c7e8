"""`tallybook period`: shows a period and its status, closes and locks it."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, ReasonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say, say_warning


@app.command()
def period(
    identifier: Annotated[
        str | None,
        typer.Argument(metavar="PERIOD", help="The period, such as 2026-01.", autocompletion=completion.periods),
    ] = None,
    close: Annotated[bool, typer.Option("--close", help="Close the period: later runs need --reopen-reason.")] = False,
    lock: Annotated[bool, typer.Option("--lock", help="Lock a closed period: it can never run again.")] = False,
    reason: ReasonOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show a period and its status, close or lock it; without a period, list those that are not open."""
    from tallybook.errors import UsageError
    from tallybook.workspace import Workspace

    if close and lock:
        raise UsageError(
            "--close and --lock cannot both be given", "close the period first; lock it with a second command"
        )
    if reason is not None and not (close or lock):
        raise UsageError("--reason needs --close or --lock", f"tallybook period {identifier or '2026-01'} --close")
    if identifier is None and (close or lock):
        raise UsageError("no period is given", f"tallybook period 2026-01 {'--close' if close else '--lock'}")
    opened = Workspace.open(workspace)
    if identifier is None:
        changed = opened.periods()
        if json:
            emit(changed)
            return
        for name, status in changed.periods.items():
            say(f"{name}  {status}")
        if not changed.periods:
            say(f"no period of calendar {changed.calendar} was closed or locked")
        return
    if close or lock:
        state = opened.set_period_status(identifier, "closed" if close else "locked", reason=reason)
    else:
        state = opened.period(identifier)
    if json:
        emit(state)
        return
    say(f"{state.identifier}  {state.level}  {state.start_date} to {state.end_date}  {state.status}")
    for change in state.changes:
        say(f"  {'' if change.period == state.identifier else f'{change.period} '}{change}")
    for entry in state.unfinished:
        say_warning(f"project {entry.project} {entry.reason}")
