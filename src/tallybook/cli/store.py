"""`store`: the metadata store itself."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say

store_app = typer.Typer(help="Look after the metadata store.")
app.add_typer(store_app, name="store")


@store_app.command()
def upgrade(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Make or migrate the tables. SQLite stores do so by themselves."""
    from tallybook.workspace import Workspace

    upgraded = Workspace.open(workspace).upgrade_store()
    if json:
        emit(upgraded)
    else:
        say("the store is up to date")


@store_app.command()
def join(
    new: Annotated[bool, typer.Option("--new", help="Begin a new workspace instead.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Make this folder the workspace of the store that has its name."""
    from tallybook.workspace import Workspace

    joined = Workspace.open(workspace).join_store(new=new)
    if json:
        emit(joined)
    else:
        say(f"this folder is workspace '{joined.workspace}' of the store")


@store_app.command()
def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The name it has in the store.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Give a workspace of the store the name that is in tallybook.yaml now."""
    from tallybook.workspace import Workspace

    renamed = Workspace.open(workspace).rename_in_store(old)
    if json:
        emit(renamed)
    else:
        say(f"workspace '{renamed.old}' of the store is '{renamed.workspace}' now")
