"""`tallybook schema`: the JSON Schema of the YAML, for editors."""

from __future__ import annotations

from typing import Annotated, Any

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
    from tallybook.project.schema import settings_schema

    emit(settings_schema() if settings else whole_schema())


def whole_schema() -> dict[str, Any]:
    """The schema of every kind of document, scenarios included."""
    from tallybook.project.schema import documents_schema
    from tallybook.scenarios.model import Scenario

    return documents_schema({"scenario": Scenario})
