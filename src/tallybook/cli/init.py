"""`tallybook init`: makes a small workspace that validates, runs and has a test."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say
from tallybook.errors import UsageError


@app.command()
def init(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder; by default the current one.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Make a small workspace to start from. Existing files are never overwritten."""
    from tallybook.cli.scaffold import make_workspace

    if workspace is not None and folder is not None:
        raise UsageError("DIR and --workspace both name the folder", "give one of them")
    target = workspace or folder or Path()
    files = make_workspace(target)
    if json:
        from tallybook.documents.definitions import NewWorkspace

        emit(NewWorkspace.of(target, files))
        return
    for name in files:
        say(f"created {target / name}")
    enter = [] if target.absolute() == Path.cwd() else [f"cd {shlex.quote(str(target))}"]
    say()
    say("next:")
    for command in (*enter, "tallybook validate", "tallybook run sales-close --period 2026-01"):
        say(f"  {command}", whole=True)
