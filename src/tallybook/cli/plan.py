"""`tallybook plan`: what a run would do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say

PeriodOption = Annotated[str, typer.Option("--period", "-p", help="The period, such as 2026-01 or 2026-Q1.")]
AsOfOption = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="The date bitemporal data is read at; by default the period's first day."),
]


@app.command()
def plan(
    project: Annotated[str, typer.Argument(help="The project.")],
    period: PeriodOption,
    as_of: AsOfOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show versions, places, the schema after each operation and the outputs of a run. Writes nothing."""
    from tallybook.engine.explain import plan_document, plan_text
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    made = opened.plan(project, period, as_of.date() if as_of else None)
    refused = opened.refusal(project, period)
    if json:
        emit(plan_document(made) | {"refused": refused.to_json() if refused else None})
        return
    for line in plan_text(made):
        say(line)
    if refused is not None:
        say()
        say(f"a run would be refused: {refused.message}")
