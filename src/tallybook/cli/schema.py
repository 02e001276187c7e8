"""`tallybook schema`: the JSON Schema of the YAML, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit


@app.command()
def schema(
    settings: Annotated[bool, typer.Option("--settings", help="The schema of tallybook.yaml instead.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Print the JSON Schema of the YAML documents, for editors. It is JSON with and without --json."""
    from tallybook.project.schema import documents_schema, settings_schema

    emit(settings_schema() if settings else documents_schema())
