"""`tallybook runs` and `replay`: lists and shows runs, and executes one again to compare the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.layout import Cell, Column, table, table_width
from tallybook.cli.one_run import STATUS_ROLES, say_record, time_taken, within
from tallybook.cli.screen import counted, emit, room, say, say_lines, say_total
from tallybook.errors import UsageError, did_you_mean
from tallybook.text import Marked, Role, unstyled, width

if TYPE_CHECKING:
    from tallybook.documents.runs import ComparedOutput, RunListDocument
    from tallybook.model.run import Run, RunStatus


@app.command()
def runs(
    run: Annotated[
        str | None,
        typer.Argument(help="Show one run in full. The beginning of its id is enough.", autocompletion=completion.runs),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Only of this project.", autocompletion=completion.projects)
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", "-p", help="Only for this period.", autocompletion=completion.periods)
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Only with this status.", autocompletion=completion.statuses)
    ] = None,
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
        if opened.is_batch(run):
            raise UsageError(
                f"{run} is a batch, not a run", f"`tallybook run --retry {run} --plan-only` shows what is left"
            )
        found = opened.run_details(run)
        details = RunDetailsDocument.of(found)
        if json:
            emit(details)
        else:
            say_record(details, opened.root, found.superseded_by)
        return
    listed = RunListDocument.of(opened.runs(project=project, period=period, statuses=wanted, limit=limit))
    if json:
        emit(listed)
    elif listed.runs:
        _say_list(listed, opened.root)
        if listed.more:
            say(Marked(f"… {counted(listed.more, 'older run')}; `--limit {limit + listed.more}` lists all", "faint"))
    else:
        say("no runs")


def _statuses(given: Sequence[str]) -> tuple[RunStatus, ...]:
    from tallybook.model.run import RunStatus

    statuses = get_args(RunStatus)
    for status in given:
        if status not in statuses:
            raise UsageError(f"'{status}' is not a status of a run", did_you_mean(status, statuses))
    return cast(tuple[RunStatus, ...], tuple(given))


def _say_list(listed: RunListDocument, root: Path) -> None:
    """Prints a table. Where the terminal is too narrow for it, ids are cut to what is unique, the version and the year
    are left out, and notes are below their run if need be."""
    most = room()
    columns, rows = _table(listed, is_narrow=False)
    if most is not None and table_width(columns, rows) > most:
        columns, rows = _table(listed, is_narrow=True)
    fits = most is None or table_width(columns, rows) <= most
    notes = ["" if fits else _note(run, listed) for run in listed.runs]
    head, rule, *lines = table(columns, rows) if fits else table(columns[:-1], [cells[:-1] for cells in rows])
    say_lines([head, rule])
    for run, line, note in zip(listed.runs, lines, notes, strict=True):
        say_lines([line])
        if note:
            say("  ", note)
        if run.problem:
            say("  ", Marked(str(run.problem["type"]), "type"), f": {within(str(run.problem['message']), root)}")


def _table(listed: RunListDocument, *, is_narrow: bool) -> tuple[list[Column], list[list[Cell]]]:
    """Returns the columns and rows of the table. Columns without any value are left out, but not the last one."""
    took, started = ("took", "started UTC") if is_narrow else ("duration", "started (UTC)")
    titles = ("run", "project", "period", "environment", "status", "rows", took, started, "")
    columns = [Column(title, right=title in ("rows", took)) for title in titles]
    length = _unique_length([run.id for run in listed.runs]) if is_narrow else None
    rows = [_cells(run, listed, length) for run in listed.runs]
    kept = [index for index, column in enumerate(columns) if not column.title or any(cells[index] for cells in rows)]
    return [columns[index] for index in kept], [[cells[index] for index in kept] for cells in rows]


def _note(run: Run, listed: RunListDocument) -> Cell:
    """What is special of a run. One whose process is gone is recorded as failed by the next command that writes."""
    notes = {"process is gone": run.id in listed.dead, "stale": run.id in listed.stale, "sandbox": run.sandbox}
    words = ", ".join(words for words, holds in notes.items() if holds)
    is_bad = run.id in listed.dead or run.id in listed.stale
    return Marked(words, "warning" if is_bad else "faint") if words else ""


def _cells(run: Run, listed: RunListDocument, length: int | None) -> list[Cell]:
    return [
        run.id[:length],
        run.project_id if length else f"{run.project_id} v{run.project_version}",
        run.period,
        run.environment or "",
        Marked(run.status, STATUS_ROLES.get(run.status, "title")),
        f"{listed.rows[run.id]:,}" if run.id in listed.rows else "",
        time_taken(run),
        f"{run.run_timestamp:{'%m-%d %H:%M' if length else '%Y-%m-%d %H:%M:%S'}}",
        _note(run, listed),
    ]


def _unique_length(ids: Sequence[str]) -> int:
    """Returns how many characters distinguish the ids, at least as many as people expect of an abbreviated id."""
    longest = max(map(len, ids), default=_SHORT_ID)
    return next(n for n in range(_SHORT_ID, longest + 1) if n == longest or len({id[:n] for id in ids}) == len(ids))


_SHORT_ID = 8


_VERDICTS = {True: "identical", False: "NOT identical", None: "could not be compared"}


@app.command()
def replay(
    run: Annotated[
        str,
        typer.Argument(
            help="The run to execute again. The beginning of its id is enough.", autocompletion=completion.runs
        ),
    ],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Execute a run's snapshot again in a scratch folder and say whether every cell is the same."""
    from tallybook.documents.runs import ReplayDocument
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace, warm=True)
    replayed = ReplayDocument.of(opened.replay(run))
    if json:
        emit(replayed)
        return 0 if replayed.identical else 1
    for output in replayed.outputs:
        _say_comparison(output, opened.root)
    for check in replayed.checks:
        before = "" if check.identical else f", in the run: {check.then.summary if check.then else 'no result'}"
        say(f"check {check.seq} ({check.now.summary}): {'identical' if check.identical else 'different'}{before}")
    for change in replayed.changed_inputs:
        say(f"input changed since the run: {change}")
    if not replayed.outputs:
        say("the run has no outputs to compare")
    verdict = Marked(_VERDICTS[replayed.identical], "passed" if replayed.identical else "failed")
    say(f"run {replayed.run}: ", verdict)
    say_total()
    return 0 if replayed.identical else 1


def _say_comparison(output: ComparedOutput, root: Path) -> None:
    verdict = output.unknown or ("identical" if output.identical else "different")
    role: Role = "passed" if output.identical else "warning" if output.identical is None else "failed"
    head, where, most = f"output {output.seq} ({counted(output.rows, 'row')}", within(output.location, root), room()
    line = (f"{head}, {where}): ", Marked(verdict, role))
    if most is None or width(unstyled(line)) <= most:
        say(*line)
    else:
        say(f"{head}): ", Marked(verdict, role))
        say(f"  {where}")
    for sign, rows in (("-", output.only_then), ("+", output.only_now)):
        for row in rows:
            say(f"  {sign} " + ", ".join(f"{name}={value}" for name, value in row.items() if value is not None))
