"""`tallybook run`: a project for one or more periods, with progress while it goes and a summary after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, is_watched, problems_document, say
from tallybook.errors import RunError, UsageError
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from tallybook.engine.events import Observer
    from tallybook.runs.runner import RunResult
    from tallybook.workspace import Workspace


@app.command()
def run(
    project: Annotated[str | None, typer.Argument(help="The project.")] = None,
    period: Annotated[
        list[str] | None,
        typer.Option("--period", "-p", help="The period, such as 2026-01; may be repeated."),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The date bitemporal data is read at; by default the period's first."),
    ] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="Print the first N rows of each output.")] = 0,
    retry: Annotated[str | None, typer.Option(metavar="RUN", help="Continue a failed or cancelled run.")] = None,
    reopen_reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why a closed period is run again; kept with the run.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Append once more what an earlier run has appended for the period.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Run a project for a period. A draft's outputs go to the sandbox."""
    from tallybook.workspace import Workspace

    if (retry is None) == (project is None):
        raise UsageError("name a project and a period, or a run to retry", "tallybook run PROJECT --period 2026-01")
    if retry is None and not period:
        raise UsageError("no period is given", f"tallybook run {project} --period 2026-01")
    if retry is not None and (period or as_of):
        raise UsageError("a retry has the period and the date of its run", f"tallybook run --retry {retry}")
    opened = Workspace.open(workspace)
    results: list[RunResult] = []
    try:
        shared = {"reopen_reason": reopen_reason, "again": again, "observers": () if json else _observers()}
        for start in _starts(opened, project, period or (), as_of, retry, shared):
            results.append(start())
            if not json:
                _say_result(results[-1], show, opened)
    except RunError as error:
        if not json and error.run_id is not None:
            say(f"run {error.run_id} failed; `tallybook runs {error.run_id}` shows how far it came", error=True)
        if not json or not results:
            raise
        failed = {"run_id": error.run_id, "log": error.log} | problems_document(error.problems)
        emit({"runs": [_document(result) for result in results], **failed})
        return error.exit_code
    except KeyboardInterrupt:
        say("cancelled; `tallybook runs --status cancelled` shows how far it came", error=True)
        raise
    if json:
        emit({"runs": [_document(result) for result in results]})
    return 0


def _starts(
    workspace: Workspace,
    project: str | None,
    periods: Sequence[str],
    as_of: datetime | None,
    retry: str | None,
    shared: Mapping[str, Any],
) -> Iterator[Callable[[], RunResult]]:
    """The runs asked for, one after the other. `shared` are the options that a run and a retry both take."""
    if retry is not None:
        yield partial(workspace.retry, retry, **shared)
    day = as_of.date() if as_of else None
    for period in periods:
        yield partial(workspace.run, str(project), period, as_of=day, **shared)


def _document(result: RunResult) -> dict[str, Any]:
    return {
        "run": result.run.model_dump(mode="json"),
        "operations": [operation.model_dump(mode="json") for operation in result.operations],
        "outputs": [output.model_dump(mode="json") for output in result.outputs],
        "warnings": list(result.warnings),
    }


def _say_result(result: RunResult, show: int, workspace: Workspace) -> None:
    run = result.run
    say(f"run {run.id}: project {run.project_id} v{run.project_version}, period {run.period}, {run.status}")
    widest = max(width(printable(step.name)) for step in result.plan.steps)
    for operation in result.operations:
        output = next((each for each in result.outputs if each.seq == operation.seq), None)
        done = f"{counted(output.rows_written or 0, 'row')} → {output.place}" if output else ""
        say(f"  {operation.seq:>4}  {operation.type:<9}  {padded(printable(operation.name), widest)}  {done}".rstrip())
        if output is not None and output.dataset_id is not None:
            say(f"        registered as dataset {output.dataset_id} v{output.dataset_version}")
    for warning in result.warnings:
        say(f"  warning: {warning}")
    if run.sandbox:
        say(f"  the project is a draft, so its outputs went to the sandbox {workspace.sandbox}")
        say(f"  `tallybook activate {run.project_id}` makes the next run write to its destinations")
    if show:
        _say_rows(result, show, workspace)


def _say_rows(result: RunResult, show: int, workspace: Workspace) -> None:
    from tallybook.runs.preview import output_rows

    for output in result.outputs:
        say()
        say(f"first rows of output {output.seq}:")
        for line in output_rows(workspace.session, result, output, show):
            say(f"  {line}")


def _observers() -> Sequence[Observer]:
    """Progress on standard error, when someone is watching."""
    if not is_watched():
        return ()
    from tallybook.cli.progress import show_progress

    return (show_progress,)
