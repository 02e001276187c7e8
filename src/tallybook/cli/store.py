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
    from tallybook.store.store import Store
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    store = Store.at(opened.store_setting, opened.root)
    try:
        store.upgrade()
    finally:
        store.close()
    if json:
        emit({"upgraded": True})
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

    opened = Workspace.open(workspace)
    opened.join_store(new=new)
    if json:
        emit({"workspace": opened.name})
    else:
        say(f"this folder is workspace '{opened.name}' of the store")


@store_app.command()
def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The name it has in the store.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Give a workspace of the store the name that is in tallybook.yaml now."""
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    opened.rename_in_store(old)
    if json:
        emit({"workspace": opened.name, "old": old})
    else:
        say(f"workspace '{old}' of the store is '{opened.name}' now")
