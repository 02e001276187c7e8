"""`tallybook runs` and `replay`: lists and shows runs, and executes one again to compare the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say
from tallybook.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tallybook.documents.runs import ComparedOutput, RunDetailsDocument
    from tallybook.model.run import Run, RunStatus


@app.command()
def runs(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Show one run in full.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only of this project.")] = None,
    period: Annotated[str | None, typer.Option("--period", "-p", help="Only for this period.")] = None,
    status: Annotated[list[str] | None, typer.Option("--status", help="Only with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many.")] = 50,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List runs, newest first, or show one with its operations, outputs and locations."""
    from tallybook.documents.runs import RunDetailsDocument, RunListDocument
    from tallybook.workspace import Workspace

    wanted = _statuses(status or ())
    opened = Workspace.open(workspace)
    if run is not None:
        details = RunDetailsDocument.of(opened.run_details(run))
        if json:
            emit(details)
        else:
            _say_details(details)
        return
    listed = RunListDocument.of(opened.runs(project=project, period=period, statuses=wanted, limit=limit))
    if json:
        emit(listed)
        return
    for entry in listed.runs:
        say(_line(entry, is_dead=entry.id in listed.dead))
    if not listed.runs:
        say("no runs")


def _statuses(given: Sequence[str]) -> tuple[RunStatus, ...]:
    from tallybook.model.run import RunStatus

    statuses = get_args(RunStatus)
    for status in given:
        if status not in statuses:
            raise UsageError(f"'{status}' is not a status of a run", did_you_mean(status, statuses))
    return cast(tuple[RunStatus, ...], tuple(given))


def _line(run: Run, *, is_dead: bool = False) -> str:
    """Returns the line of a run. A run whose process is gone is recorded as failed by the next command that writes."""
    status = f"{run.status}, but its process is gone" if is_dead else run.status
    sandbox = " (sandbox)" if run.sandbox else ""
    problem = f"  {run.problem['type']}: {run.problem['message']}" if run.problem else ""
    moment = run.run_timestamp.strftime("%Y-%m-%d %H:%M:%S")
    return f"{run.id}  {moment}  {run.project_id} v{run.project_version}  {run.period}  {status}{sandbox}{problem}"


def _say_details(details: RunDetailsDocument) -> None:
    from tallybook.model.run import Snapshot

    run, snapshot = details.run, details.snapshot
    say(_line(run, is_dead=details.dead))
    say(f"  as of {run.as_of}, attempt {run.attempt}, {run.owner}{_took(run)}")
    if run.reopen_reason:
        say(f"  the period was closed; the run was allowed because: {run.reopen_reason}")
    for use in snapshot.resolver_snapshots if isinstance(snapshot, Snapshot) else ():
        say(f"  reads {use.dataset_id} v{use.dataset_version}, table {use.table}")
        for location in use.locations:
            say(f"    {location['source']['type']} {location['target']}")
    for operation in details.operations:
        took = "" if operation.duration_ms is None else f"  {operation.duration_ms} ms"
        say(f"  {operation.seq:>4}  {operation.type:<9}  {operation.name}{took}")
    for output in details.outputs:
        state = counted(output.rows_written or 0, "row") if output.committed else "not finished"
        say(f"  output {output.seq}: {state} → {output.location}")
        if output.dataset_id:
            say(f"    registered as dataset {output.dataset_id} v{output.dataset_version}")
    for event in details.events:
        if event.event == "warning" and event.detail:
            say(f"  warning: {event.detail['message']}")
    if run.status in ("failed", "cancelled"):
        say(f"  last completed operation: {run.last_completed_operation or 'none'}")
        if isinstance(snapshot, Snapshot):
            say(f"  `tallybook run --retry {run.id}` continues it")


def _took(run: Run) -> str:
    if run.started_at is None or run.finished_at is None:
        return ""
    return f", {(run.finished_at - run.started_at).total_seconds():.1f} s"


_VERDICTS = {True: "identical", False: "NOT identical", None: "could not be compared"}


@app.command()
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to execute again.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Execute a run's snapshot again in a scratch folder and say whether every cell is the same."""
    from tallybook.documents.runs import ReplayDocument
    from tallybook.workspace import Workspace

    replayed = ReplayDocument.of(Workspace.open(workspace, warm=True).replay(run))
    if json:
        emit(replayed)
        return 0 if replayed.identical else 1
    for output in replayed.outputs:
        _say_comparison(output)
    for change in replayed.changed_inputs:
        say(f"input changed since the run: {change}")
    if not replayed.outputs:
        say("the run has no outputs to compare")
    say(f"run {run}: {_VERDICTS[replayed.identical]}")
    return 0 if replayed.identical else 1


def _say_comparison(output: ComparedOutput) -> None:
    verdict = output.unknown or ("identical" if output.identical else "different")
    say(f"output {output.seq} ({counted(output.rows, 'row')}, {output.location}): {verdict}")
    for sign, rows in (("-", output.only_then), ("+", output.only_now)):
        for row in rows:
            say(f"  {sign} " + ", ".join(f"{name}={value}" for name, value in row.items() if value is not None))
