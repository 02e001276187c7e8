"""`store`: the metadata store itself."""

from __future__ import annotations

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
