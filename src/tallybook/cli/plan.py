"""`tallybook plan`: what a run would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.flowchart import flowchart
from tallybook.cli.parameters import SetOption, given_parameters
from tallybook.cli.screen import emit, say
from tallybook.text import Line, Marked

if TYPE_CHECKING:
    from tallybook.documents.plan import (
        PlanDocument,
        PlannedKeep,
        PlannedLocation,
        PlannedOperation,
        PlannedOutput,
        PlannedRows,
        PlannedTable,
    )

PeriodOption = Annotated[
    str,
    typer.Option("--period", "-p", help="The period, such as 2026-01 or 2026-Q1.", autocompletion=completion.periods),
]
AsOfOption = Annotated[
    datetime | None,
    typer.Option(
        formats=["%Y-%m-%d"],
        metavar="DATE",
        help="The date bitemporal data is read at; by default the period's first day.",
    ),
]


@app.command()
def plan(
    project: Annotated[str, typer.Argument(help="The project.", autocompletion=completion.projects)],
    period: PeriodOption,
    as_of: AsOfOption = None,
    parameters: SetOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show which rows are kept between operations, and why.")
    ] = False,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Draw it as a Mermaid flowchart, for Markdown pages.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a run would do: versions, locations, the schema after each operation, outputs. Writes nothing."""
    from tallybook.documents.plan import PlanDocument
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    planned = opened.plan(project, period, as_of.date() if as_of else None, given_parameters(parameters))
    refused, stale = opened.refusal(project, period), opened.stale_run(project, period)
    document = PlanDocument.of(planned, refused, stale, opened.environment)
    if json:
        emit(document)
        return
    if mermaid:
        for text in flowchart(document):
            say(text.replace(f"{opened.root}/", ""), whole=True)
        return
    for line in plan_lines(document, explain=explain):
        say(*within(line, opened.root), hang=_hang(line))


def within(line: Line, root: Path) -> Line:
    """Returns a line in which paths inside the workspace are relative to it."""
    return tuple(part.replace(f"{root}/", "") if isinstance(part, str) else part for part in line)


def _hang(line: Line) -> int | None:
    """Where a line that is too long goes on: below the text beside its label."""
    has_label = len(line) > 1 and isinstance(line[1], Marked) and line[1].role == "label"
    return _TEXT_AT + 2 if has_label else None


_LABELS_AT, _TEXT_AT = 3, 15


def plan_lines(plan: PlanDocument, *, explain: bool = False) -> Iterator[Line]:
    """Yields the lines that people read of a plan."""
    period = plan.period
    yield (Marked(f"project {plan.project} v{plan.project_version} for {period.level} {period.identifier}", "title"),)
    yield (f"  {period.start_date} to {period.end_date}, as of {plan.as_of}",)
    if plan.environment is not None:
        yield (f"  environment {plan.environment}",)
    for name, parameter in plan.parameters.items():
        yield (f"  {name} = {parameter.value} ({parameter.type})",)
    yield ()
    yield (Marked("reads", "title"),)
    for table in plan.reads:
        yield (f"  {table.dataset} v{table.dataset_version}, table {table.table}: {_rows_read(table)}",)
        for location in table.locations:
            yield (f"    {location.location}", Marked(_origin(location), "faint"))
    yield ()
    yield (Marked("starts with", "title"),)
    yield (f"  {_columns({name: type for name, type in plan.schema_.items() if name[:1] != '_'})}",)
    if plan.conditions:
        yield ()
        yield (Marked("conditions", "title"),)
    for name, condition in plan.conditions.items():
        yield (f"  {{{{{name}}}}}: {condition}",)
    for operation in plan.operations:
        yield ()
        yield (Marked(f"{operation.seq}. {operation.type}: {operation.name}", "title"),)
        yield from _labelled(_arguments(operation))
    if explain:
        yield ()
        yield from _keep_lines(plan)
    yield from _notes(plan)


def _notes(plan: PlanDocument) -> Iterator[Line]:
    if plan.warnings:
        yield ()
    for warning in plan.warnings:
        yield (Marked("warning:", "warning"), f" {warning}")
    if plan.stale is not None:
        yield ()
        yield (f"the last run, {plan.stale.run_id}, is ", Marked("stale:", "warning"))
        yield from ((f"  {reason}",) for reason in plan.stale.written_anew)
    if plan.refused is not None:
        yield ()
        yield (Marked("a run would be refused:", "failed"), f" {plan.refused.message}")


def _origin(location: PlannedLocation) -> str:
    """How a location was found."""
    if location.resolver:
        return f" (resolver {location.resolver}, rule '{location.rule}')"
    if location.dataset_version is not None and location.period is not None:
        return f" (version {location.dataset_version}, written for {location.period})"
    return ""


def _rows_read(table: PlannedTable) -> str:
    asked = f" ({table.source_period})" if table.source_period is not None else ""
    if table.temporal_mode == "period":
        return f"rows of {', '.join(table.periods)}{asked}" if asked else "rows of the period"
    if table.temporal_mode == "bitemporal":
        date = "a date of each working row" if table.as_of is None else f"{table.as_of}{asked}"
        return f"rows valid as of {date}"
    return "all rows"


def _labelled(lines: Iterable[tuple[str, str]]) -> Iterator[Line]:
    """Puts each text beside its label. Lines after the first with the same label have none."""
    before = ""
    for label, text in lines:
        shown = "" if label == before else label
        yield (" " * _LABELS_AT, Marked(f"{shown:<{_TEXT_AT - _LABELS_AT}}", "label"), text)
        before = label


def _arguments(operation: PlannedOperation) -> Iterator[tuple[str, str]]:
    """Yields what an operation does as texts with labels."""
    from tallybook.documents.plan import PlannedOutput

    output = operation if isinstance(operation, PlannedOutput) else None
    if operation.appends is None:
        chosen = operation.selector or "all that are not deleted"
        with_deleted = "all, deleted ones too" if operation.selector is None else f"{chosen}, deleted ones too"
        yield "rows", with_deleted if output is not None and output.include_deleted else chosen
    else:
        yield "append", operation.appends.table
        yield from _source(operation.appends)
    for join in operation.joins:
        yield "join", f"{join.table}, as {join.alias}"
        yield from _source(join)
        if join.on != "TRUE":
            yield "  on", join.on
        if join.valid is not None:
            yield "  valid", join.valid
    for key, expression in operation.uses.items():
        yield key.replace("_", " "), expression
    for column, expression in operation.sets.items():
        yield "set", f"{column} = {expression}"
    if operation.tests is not None:
        yield "test", operation.tests
    if operation.deletes:
        yield "delete", "these rows: later operations do not see them"
    if operation.adds:
        yield "new", _columns(operation.adds)
    if output is not None:
        yield from _destination(output)


def _source(rows: PlannedRows) -> Iterator[tuple[str, str]]:
    if rows.selector is not None:
        yield "  where", rows.selector
    if rows.group_by:
        yield "  group by", ", ".join(rows.group_by)
    for column, expression in rows.aggregations.items():
        yield "  get", f"{column} = {expression}"


def _destination(output: PlannedOutput) -> Iterator[tuple[str, str]]:
    periods = f" {', '.join(output.replaces_periods)}" if output.replaces_periods else ""
    yield "write", f"{output.destination} ({output.mode}{periods})"
    yield "columns", ", ".join(output.columns)
    left_out = [name for name in output.leaves_out if name[:1] != "_"]
    if left_out:
        yield "leave out", ", ".join(left_out)
    if output.partition_by:
        yield "partitions", ", ".join(output.partition_by)
    if output.order_by:
        yield "order by", ", ".join(output.order_by)
    if output.register_as_dataset:
        yield "register", f"as dataset {output.register_as_dataset}"


def _keep_lines(plan: PlanDocument) -> Iterator[Line]:
    yield (Marked("kept between operations", "title"),)
    if not plan.keeps and not plan.kept_tables and not plan.one_pass:
        yield ("  nothing: no rows that are costly to compute are used twice",)
    for seqs in plan.one_pass:
        rows = f"the groups of operations {', '.join(map(str, seqs[:-1]))} and {seqs[-1]}"
        yield (f"  before operation {seqs[0]}: {rows}, because one pass over the same rows computes all of them",)
    for keep in plan.keeps:
        yield (f"  before operation {keep.before}: {_kept_rows(keep)}, because {keep.reason}",)
        if keep.columns:
            yield (f"    columns: {', '.join(keep.columns)}",)
    for table in plan.kept_tables:
        yield (f"  from operation {table.operation} on: the joined table {table.alias}, because {table.reason}",)


def _kept_rows(keep: PlannedKeep) -> str:
    if keep.made_by == keep.before:
        return "the groups of its aggregates with OVER"
    return f"the rows of operation {keep.made_by}" if keep.made_by else "the input rows"


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {type}" for name, type in columns.items())
