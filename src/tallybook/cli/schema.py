"""`tallybook schema`: prints the JSON Schema of the YAML, for editors."""

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
    from tallybook.documents.definitions import SchemaDocument
    from tallybook.documents.schema import yaml_schema
    from tallybook.project.schema import settings_schema

    emit(SchemaDocument(settings_schema() if settings else yaml_schema()))
