"""`tallybook store`: upgrades the metadata store, and says which of its workspaces a folder is."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli.app import App, JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say

store_app = App(help="Upgrade the metadata store, or say which of its workspaces this folder is.")
app.add_typer(store_app, name="store")


@store_app.command()
def upgrade(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Create or migrate the tables. SQLite stores are migrated automatically."""
    from tallybook.workspace import Workspace

    upgraded = Workspace.open(workspace).upgrade_store()
    if json:
        emit(upgraded)
    else:
        say("the store is up to date")


@store_app.command()
def join(
    new: Annotated[bool, typer.Option("--new", help="Add a new workspace instead.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Use this folder as the workspace that has its name in the store."""
    from tallybook.workspace import Workspace

    joined = Workspace.open(workspace).join_store(new=new)
    if json:
        emit(joined)
    else:
        say(f"this folder is workspace '{joined.workspace}' of the store")


@store_app.command()
def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The name that the workspace has in the store.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Rename a workspace of the store to the name in tallybook.yaml."""
    from tallybook.workspace import Workspace

    renamed = Workspace.open(workspace).rename_in_store(old)
    if json:
        emit(renamed)
    else:
        say(f"workspace '{renamed.old}' of the store is now called '{renamed.workspace}'")
