"""`tallybook session`: keeps Spark running between commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.app import App, JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, is_watched, say, say_progress, say_total

if TYPE_CHECKING:
    from tallybook.documents.session import WarmSessionState

session_app = App(help="Keep Spark running between commands: start, look at or stop a warm session.")
app.add_typer(session_app, name="session")


@session_app.command()
def start(
    idle: Annotated[int, typer.Option(metavar="MINUTES", min=1, help="Minutes without use after which it ends.")] = 30,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Start a warm session. `run`, `test` and `replay` with the same settings use it instead of starting Spark."""
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    if is_watched():
        say_progress("starting Spark …")
    started = opened.start_session(idle)
    if json:
        emit(started)
    else:
        say(_line(started))
        say_total()


@session_app.command()
def status(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Show the warm sessions of this user, and which of them this workspace uses."""
    from tallybook.workspace import Workspace

    document = Workspace.open(workspace).sessions()
    if json:
        emit(document)
        return
    if document.fitting is None:
        say("no warm session with the settings of this workspace is running; `tallybook session start` starts one")
    for session in document.sessions:
        say(_line(session))


@session_app.command()
def stop(
    all_sessions: Annotated[bool, typer.Option("--all", help="Also stop sessions with other settings.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Stop it even if a command uses it; that command fails.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Stop the warm session of this workspace. Refused while a command uses it."""
    from tallybook.workspace import Workspace

    document = Workspace.open(workspace).stop_sessions(all_sessions=all_sessions, now=now)
    if json:
        emit(document)
    elif document.stopped:
        say(f"stopped {counted(len(document.stopped), 'warm session')}")
    else:
        say("no warm session was running")


def _line(session: WarmSessionState) -> str:
    use = "in use" if session.in_use else f"ends after {counted(session.idle_minutes, 'minute')} without use"
    other = "" if session.fits else "; its settings are not those of this workspace"
    return (
        f"warm session: pid {session.pid}, since {session.since:%Y-%m-%d %H:%M:%S} UTC, {session.master}, "
        f"Spark {session.spark}, Java {session.java}, {use}{other}"
    )
