"""`tallybook apply`, `activate` and `deactivate`: record files as versions, and put projects into use."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, ReasonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say, say_problems

ProjectArgument = Annotated[str, typer.Argument(help="The project.", autocompletion=completion.projects)]


@app.command()
def apply(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be recorded.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Record the files: a changed definition becomes a new version, never an edit of an old one."""
    from tallybook.workspace import Workspace

    applied = Workspace.open(workspace).apply(dry_run=dry_run)
    if json:
        from tallybook.documents.definitions import AppliedChanges

        emit(AppliedChanges.of(applied, dry_run=dry_run))
        return 1 if applied.left_out else 0
    verb = "would become" if dry_run else "is now"
    for change in applied.versions:
        say(f"{change.kind} {change.id} {verb} v{change.version}{' (new)' if change.is_new else ''}")
        for words in () if change.is_new else change.words:
            say(f"  {words}")
    if not applied.versions and not applied.left_out:
        say("nothing changed")
    for state in applied.states:
        say(f"project {state.project_id} v{state.version}: {state.status}")
        for conflict in state.conflicts:
            say(f"  dataset {conflict.dataset_id} v{conflict.from_version} → v{conflict.to_version}")
            for broken in conflict.changes:
                say(f"    {broken}")
    if applied.left_out:
        say_problems(applied.left_out, error=True)
        say("definitions with these problems are not recorded; what was recorded of them before stays", error=True)
    return 1 if applied.left_out else 0


@app.command()
def activate(
    project: ProjectArgument,
    stay_pinned: Annotated[
        bool, typer.Option("--stay-pinned", help="Settle a conflict by staying on the pinned input version.")
    ] = False,
    reason: ReasonOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Put a valid project into use: its runs write to their destinations and read a pinned version of the input."""
    from tallybook.workspace import Workspace

    state = Workspace.open(workspace).activate(project, stay_pinned=stay_pinned, reason=reason)
    if json:
        emit(state)
        return
    say(f"project {project} v{state.version} is active, on version {state.input_dataset_version} of its input dataset")


@app.command()
def deactivate(
    project: ProjectArgument,
    reason: ReasonOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Take an active project out of use; it does not run until activated again."""
    from tallybook.workspace import Workspace

    state = Workspace.open(workspace).deactivate(project, reason=reason)
    if json:
        emit(state)
        return
    say(f"project {project} v{state.version} is inactive")
