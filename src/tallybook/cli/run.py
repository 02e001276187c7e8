"""`tallybook run`: runs a project for one or more periods, with progress and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, is_watched, say
from tallybook.errors import RunError, UsageError
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from tallybook.documents.runs import RunDocument
    from tallybook.engine.events import Observer


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
    from tallybook.documents.runs import CompletedRuns, RunDocument, RunsUntilFailure
    from tallybook.workspace import Workspace

    if (retry is None) == (project is None):
        raise UsageError("name a project and a period, or a run to retry", "tallybook run PROJECT --period 2026-01")
    if retry is None and not period:
        raise UsageError("no period is given", f"tallybook run {project} --period 2026-01")
    if retry is not None and (period or as_of):
        raise UsageError(
            "--period and --as-of cannot be given with --retry: a retry uses those of its run",
            f"tallybook run --retry {retry}",
        )
    opened = Workspace.open(workspace, warm=True)
    shared: dict[str, Any] = {"reopen_reason": reopen_reason, "again": again, "observers": () if json else _observers()}
    day = as_of.date() if as_of else None
    starts = [partial(opened.run, str(project), identifier, as_of=day, **shared) for identifier in period or ()]
    if retry is not None:
        starts = [partial(opened.retry, retry, **shared)]
    completed: list[RunDocument] = []
    try:
        for start in starts:
            result = start()
            completed.append(RunDocument.of(result))
            if json:
                continue
            _say_run(completed[-1], opened.sandbox)
            if show:
                _say_rows(opened.first_rows(result, show))
    except RunError as error:
        if not json and error.run_id is not None:
            say(f"run {error.run_id} failed; `tallybook runs {error.run_id}` shows how far it got", error=True)
        if not json or not completed:
            raise
        emit(RunsUntilFailure.of(completed, error))
        return error.exit_code
    except KeyboardInterrupt:
        say("cancelled; `tallybook runs --status cancelled` shows how far it got", error=True)
        raise
    if json:
        emit(CompletedRuns(runs=tuple(completed)))
    return 0


def _say_run(document: RunDocument, sandbox: Path) -> None:
    run = document.run
    say(f"run {run.id}: project {run.project_id} v{run.project_version}, period {run.period}, {run.status}")
    widest = max((width(printable(operation.name)) for operation in document.operations), default=0)
    outputs = {output.seq: output for output in document.outputs}
    for operation in document.operations:
        output = outputs.get(operation.seq)
        done = f"{counted(output.rows_written or 0, 'row')} → {output.location}" if output else ""
        say(f"  {operation.seq:>4}  {operation.type:<9}  {padded(printable(operation.name), widest)}  {done}".rstrip())
        if output is not None and output.dataset_id is not None:
            say(f"        registered as dataset {output.dataset_id} v{output.dataset_version}")
    for warning in document.warnings:
        say(f"  warning: {warning}")
    if run.sandbox:
        say(f"  the project is a draft, so its outputs went to the sandbox {sandbox}")
        say(f"  `tallybook activate {run.project_id}` makes the next run write to its destinations")


def _say_rows(outputs: Iterable[tuple[int, list[str]]]) -> None:
    for seq, lines in outputs:
        say()
        say(f"first rows of output {seq}:")
        for line in lines:
            say(f"  {line}")


def _observers() -> Sequence[Observer]:
    """Returns an observer that shows progress, if standard error is a terminal."""
    if not is_watched():
        return ()
    from tallybook.cli.progress import show_progress

    return (show_progress,)
