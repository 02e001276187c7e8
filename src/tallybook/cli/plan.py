"""`tallybook plan`: what a run would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say
from tallybook.model.columns import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from tallybook.documents.plan import PlanDocument, PlannedOperation

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
    explain: Annotated[bool, typer.Option(help="Also show which rows are kept between operations, and why.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a run would do: versions, locations, the schema after each operation, outputs. Writes nothing."""
    from tallybook.documents.plan import PlanDocument
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    planned = opened.plan(project, period, as_of.date() if as_of else None)
    document = PlanDocument.of(planned, opened.refusal(project, period))
    if json:
        emit(document)
        return
    for line in plan_lines(document, explain=explain):
        say(line)


def plan_lines(plan: PlanDocument, *, explain: bool = False) -> Iterator[str]:
    """Yields the lines that people read of a plan."""
    period = plan.period
    yield f"project {plan.project} v{plan.project_version} for {period.level} {period.identifier}"
    yield f"  {period.start_date} to {period.end_date}, as of {plan.as_of}"
    yield ""
    yield "reads"
    for table in plan.reads:
        yield f"  {table.dataset} v{table.dataset_version}, table {table.table}, {_ROWS_READ[table.temporal_mode]}"
        for location in table.locations:
            rule = f"   (resolver {location.resolver}, rule '{location.rule}')" if location.resolver else ""
            yield f"    {location.location}{rule}"
    yield ""
    yield "starts with " + _columns({name: type for name, type in plan.schema_.items() if name not in SYSTEM_COLUMNS})
    for operation in plan.operations:
        yield ""
        yield from _operation_lines(operation)
    if explain:
        yield ""
        yield from _keep_lines(plan)
    if plan.warnings:
        yield ""
    for warning in plan.warnings:
        yield f"warning: {warning}"
    if plan.refused is not None:
        yield ""
        yield f"a run would be refused: {plan.refused.message}"


_ROWS_READ = {"period": "rows of the period", "bitemporal": "rows valid as of the date", "none": "all rows"}


def _operation_lines(operation: PlannedOperation) -> Iterator[str]:
    from tallybook.documents.plan import PlannedOutput

    yield f"{operation.seq}. {operation.type}: {operation.name}"
    if operation.appends is None:
        yield f"   rows: {operation.selector or 'all rows that are not deleted'}"
    for table in operation.reads:
        yield f"   reads: {table}"
    for column, expression in operation.sets.items():
        yield f"   {column} = {expression}"
    if operation.adds:
        yield f"   new: {_columns(operation.adds)}"
    if isinstance(operation, PlannedOutput):
        yield f"   writes: {operation.destination} ({operation.mode})"
        yield f"   columns: {', '.join(operation.columns)}"
        if operation.register_as_dataset:
            yield f"   registers: {operation.register_as_dataset}"


def _keep_lines(plan: PlanDocument) -> Iterator[str]:
    yield "kept between operations"
    if not plan.keeps:
        yield "  nothing: no rows are used twice that are dear to compute"
    for keep in plan.keeps:
        rows = f"the rows of operation {keep.made_by}" if keep.made_by else "the input rows"
        yield f"  before operation {keep.before}: {rows}, because {keep.reason}"
        yield f"    columns: {', '.join(keep.columns)}"


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {type}" for name, type in columns.items())
