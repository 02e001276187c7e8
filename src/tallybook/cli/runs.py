"""`runs` and `replay`: what was run, and the proof that it can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say
from tallybook.errors import UsageError, did_you_mean, fail

if TYPE_CHECKING:
    from tallybook.model.run import Run, RunStatus
    from tallybook.runs.replay import OutputComparison
    from tallybook.store.store import Store


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
    """List runs, newest first, or show one with its operations, outputs and places."""
    from tallybook.workspace import Workspace

    wanted = _statuses(status or ())
    opened = Workspace.open(workspace)
    with opened.existing_store() as store:
        if run is not None:
            _show(store, run, json)
            return
        found = store.runs(project_id=project, period=period, statuses=wanted, limit=limit) if store else ()
        dead = {each.id for each in store.dead_runs()} if store else set()
    if not found:
        opened.check_names(project, period)
    if json:
        emit({"runs": [each.model_dump(mode="json") for each in found]})
        return
    for each in found:
        say(_line(each, is_dead=each.id in dead))
    if not found:
        say("no runs")


def _statuses(given: Sequence[str]) -> tuple[RunStatus, ...]:
    from tallybook.model.run import RunStatus

    known = get_args(RunStatus)
    for status in given:
        if status not in known:
            raise UsageError(f"'{status}' is not a status of a run", did_you_mean(status, known))
    return cast(tuple[RunStatus, ...], tuple(given))


def _line(run: Run, *, is_dead: bool = False) -> str:
    """One run. The next command that writes to the store records a run whose process is gone as failed."""
    status = f"{run.status}, but its process is gone" if is_dead else run.status
    sandbox = " (sandbox)" if run.sandbox else ""
    problem = f"  {run.problem['type']}: {run.problem['message']}" if run.problem else ""
    moment = run.run_timestamp.strftime("%Y-%m-%d %H:%M:%S")
    return f"{run.id}  {moment}  {run.project_id} v{run.project_version}  {run.period}  {status}{sandbox}{problem}"


def _show(store: Store | None, run_id: str, json: bool) -> None:
    if store is None:
        raise fail("RunNotFound", f"no run has the id {run_id}", hint="nothing has run in this workspace")
    document = _document(store, run_id)
    if json:
        emit(document)
        return
    run = store.run(run_id)
    say(_line(run, is_dead=run_id in {each.id for each in store.dead_runs()}))
    say(f"  as of {run.as_of}, attempt {run.attempt}, {run.owner}{_took(run)}")
    if run.reopen_reason:
        say(f"  the period was closed; run again because: {run.reopen_reason}")
    for use in document["snapshot"].get("resolver_snapshots", ()):
        say(f"  reads {use['dataset_id']} v{use['dataset_version']}, table {use['table']}")
        for place in use["locations"]:
            say(f"    {place['source']['type']} {place['target']}")
    for operation in document["operations"]:
        took = "" if operation["duration_ms"] is None else f"  {operation['duration_ms']} ms"
        say(f"  {operation['seq']:>4}  {operation['type']:<9}  {operation['name']}{took}")
    for output in document["outputs"]:
        state = counted(output["rows_written"] or 0, "row") if output["committed"] else "not finished"
        say(f"  output {output['seq']}: {state} → {output['place']}")
        if output["dataset_id"]:
            say(f"    registered as dataset {output['dataset_id']} v{output['dataset_version']}")
    for event in document["events"]:
        if event["event"] == "warning":
            say(f"  warning: {event['detail']['message']}")
    if run.status in ("failed", "cancelled"):
        say(f"  last completed operation: {run.last_completed_operation or 'none'}")
        if document["snapshot"]:
            say(f"  `tallybook run --retry {run.id}` continues it")


def _took(run: Run) -> str:
    if run.started_at is None or run.finished_at is None:
        return ""
    return f", {(run.finished_at - run.started_at).total_seconds():.1f} s"


def _document(store: Store, run_id: str) -> dict[str, Any]:
    from tallybook.errors import ProblemError

    run = store.run(run_id)
    try:
        snapshot = store.snapshot(run_id).model_dump(mode="json")
    except ProblemError:
        snapshot = {}
    return {
        "run": run.model_dump(mode="json"),
        "operations": [each.model_dump(mode="json") for each in store.operation_results(run_id)],
        "outputs": [each.model_dump(mode="json") for each in store.output_results(run_id)],
        "events": [each.model_dump(mode="json") for each in store.run_events(run_id)],
        "snapshot": snapshot,
    }


_VERDICTS = {True: "identical", False: "NOT identical", None: "could not be compared"}


@app.command()
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to execute again.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Execute a run's snapshot again in a scratch place and say whether every cell is the same."""
    from tallybook.workspace import Workspace

    done = Workspace.open(workspace).replay(run)
    if json:
        outputs = [
            {
                "seq": each.seq,
                "place": each.place,
                "rows": each.rows,
                "identical": each.identical,
                "unknown": each.unknown,
                "only_then": list(each.only_then),
                "only_now": list(each.only_now),
            }
            for each in done.outputs
        ]
        emit({"run": run, "identical": done.identical, "changed_inputs": list(done.changed_inputs), "outputs": outputs})
        return 0 if done.identical else 1
    for output in done.outputs:
        _say_comparison(output)
    for change in done.changed_inputs:
        say(f"input changed since the run: {change}")
    if not done.outputs:
        say("the run has no outputs to compare")
    say(f"run {run}: {_VERDICTS[done.identical]}")
    return 0 if done.identical else 1


def _say_comparison(output: OutputComparison) -> None:
    verdict = output.unknown or ("identical" if output.identical else "different")
    say(f"output {output.seq} ({counted(output.rows, 'row')}, {output.place}): {verdict}")
    for sign, rows in (("-", output.only_then), ("+", output.only_now)):
        for row in rows:
            say(f"  {sign} " + ", ".join(f"{name}={value}" for name, value in row.items() if value is not None))
