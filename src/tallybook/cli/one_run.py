"""What people read about one run: what it did, the first rows of its outputs, and its record."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli.layout import Column, data_table, duration, is_cut, is_number, number_text
from tallybook.cli.screen import room, say
from tallybook.model.written import show
from tallybook.text import Marked, Role, padded, printable, width

if TYPE_CHECKING:
    from tallybook.documents.runs import RunDetailsDocument, RunDocument
    from tallybook.model.run import CheckResult, FirstRows, OperationResult, OutputResult, Run, Snapshot

STATUS_ROLES: dict[str, Role] = {
    "completed": "passed",
    "failed": "failed",
    "cancelled": "warning",
    "skipped": "warning",
}


def say_run(document: RunDocument, root: Path) -> None:
    """Prints what a run did."""
    _say_head(document.run)
    say_work(document, root)
    say_sandbox(document.run, "  the project")


def say_work(document: RunDocument, root: Path) -> None:
    """Prints the operations and warnings of a run."""
    _say_operations(document.operations, document.outputs, document.checks, root)
    say_warnings(document.warnings)


def say_sandbox(run: Run, project: str) -> None:
    """Says that the outputs of a project went to the sandbox, if they did."""
    indent = " " * (len(project) - len(project.lstrip()))
    if run.sandbox and run.project_status == "draft":
        say(f"{project} is a draft, so its outputs went to the sandbox")
        say(f"{indent}after `tallybook activate {run.project_id}` they go to their destinations")
    elif run.sandbox:
        say(f"{indent}the outputs went to the sandbox")


def say_warnings(warnings: Iterable[str]) -> None:
    """Prints the warnings of a run below it."""
    for warning in warnings:
        say("  ", Marked("warning:", "warning"), f" {warning}")


def say_first_rows(outputs: Iterable[tuple[int, FirstRows]]) -> None:
    """Prints the first rows of outputs."""
    most = room()
    within_indent = None if most is None else most - 2
    some_cut = False
    for seq, first in outputs:
        say()
        say(Marked(f"first rows of output {seq}:", "title"))
        columns = [Column(name, right=type.is_number) for name, type in first.columns.items()]
        rows = [[number_text(value) if is_number(value) else show(value) for value in row] for row in first.rows]
        for line in data_table(columns, rows, within_indent):
            say("  ", *line)
        some_cut = some_cut or is_cut(columns, rows, within_indent)
    if some_cut:
        say(Marked("to see all of it, pipe the command into `less -S`, which runs it again", "faint"))


def say_record(details: RunDetailsDocument, root: Path, superseded_by: str | None = None) -> None:
    """Prints everything that is recorded of a run. One that a later run has superseded cannot be retried."""
    from tallybook.model.run import Snapshot

    run, snapshot = details.run, details.snapshot
    _say_head(run, (", but its process is gone" if details.dead else "") + (", in the sandbox" if run.sandbox else ""))
    for reason in details.stale:
        say("  ", Marked("stale:", "warning"), f" {reason}")
    by = f" by {run.started_by}" if run.started_by is not None else ""
    why = f": {run.reason}" if run.reason else ""
    say(f"  started {run.run_timestamp:%Y-%m-%d %H:%M:%S} UTC{by}{why}")
    say(f"  as of {run.as_of}, attempt {run.attempt}, {run.owner}")
    if was_killed(run):
        say(f"  last sign of its process: {_last_sign(run):%Y-%m-%d %H:%M:%S} UTC")
    if run.reopen_reason:
        say(f"  the period was closed; the run was allowed because: {run.reopen_reason}")
    if isinstance(snapshot, Snapshot):
        _say_reads(snapshot, root)
    _say_operations(details.operations, details.outputs, details.checks, root)
    for check in details.checks:
        if not check.passed:
            say("  ", Marked(f"check {check.seq} failed:", "failed"), f" {check.shown_examples}")
    say_warnings(str(event.detail["message"]) for event in details.events if event.event == "warning" and event.detail)
    if run.problem:
        say("  ", Marked(str(run.problem["type"]), "type"), f": {within(str(run.problem['message']), root)}")
    if run.status in ("failed", "cancelled"):
        say(f"  last completed operation: {run.last_completed_operation or 'none'}")
        if superseded_by is not None:
            say(f"  superseded by run {superseded_by}; it cannot be retried")
        elif isinstance(snapshot, Snapshot):
            say(f"  `tallybook run --retry {run.id}` continues it")


def time_taken(run: Run) -> str:
    """Returns how long a run took; nothing if that is not known, as while it runs. Of a run whose process was killed,
    only the last sign of the process is known: its record ended when another command noticed."""
    if run.started_at is None or run.finished_at is None:
        return ""
    if not was_killed(run):
        return duration((run.finished_at - run.started_at).total_seconds())
    seconds = (_last_sign(run) - run.started_at).total_seconds()
    return f"> {duration(seconds)}" if seconds else ""


def was_killed(run: Run) -> bool:
    """True if the run ended because its process was gone: only that problem names the process."""
    return run.status == "failed" and run.problem is not None and f"({run.owner})" in str(run.problem["message"])


def _last_sign(run: Run) -> datetime:
    return max(run.heartbeat_at, run.started_at or run.created_at)


def within(text: str, root: Path) -> str:
    """Returns a text in which paths inside the workspace are relative to it."""
    return text.replace(f"{root}/", "")


def _say_head(run: Run, notes: str = "") -> None:
    time = time_taken(run)
    took = f" after more than {time[2:]}" if time.startswith(">") else f" in {time}" if time else ""
    status = Marked(run.status, STATUS_ROLES.get(run.status, "title"))
    where = f" in environment {run.environment}" if run.environment is not None else ""
    say(
        Marked(f"{run.project_id} v{run.project_version} for {run.period}", "title"), f"{where}: ", status, took + notes
    )
    say(f"  run {run.id}")
    if run.parameters:
        say(f"  with {', '.join(f'{name} = {value}' for name, value in run.parameters.items())}")


def _say_operations(
    operations: Iterable[OperationResult],
    outputs: Iterable[OutputResult],
    checks: Iterable[CheckResult],
    root: Path,
) -> None:
    """Prints a line for each operation, and at its end what outputs and checks did. The place of an output is below it
    if the line is too long."""
    operations = tuple(operations)
    written, tested = {output.seq: output for output in outputs}, {check.seq: check for check in checks}
    rows = [(operation.seq, operation.type, operation.name) for operation in operations]
    seen = {operation.seq for operation in operations}
    rows += [(output.seq, "output", "") for output in written.values() if output.seq not in seen]
    rows += [(check.seq, "check", check.name) for check in tested.values() if check.seq not in seen]
    digits = max((len(str(seq)) for seq, _, _ in rows), default=1)
    types = max([len("aggregate"), *(len(type) for _, type, _ in rows)])
    counts = max((len(_count(output)) for output in written.values()), default=0)
    results = {seq: _done(written.get(seq), tested.get(seq), counts, root) for seq, _, _ in rows}
    names, most = max((width(printable(name)) for _, _, name in rows), default=0), room()
    if most is not None:  # a result begins further left rather than in the next line
        longest = max((width(printable(done)) for done, _ in results.values()), default=0)
        names = min(names, max(0, most - digits - types - longest - 8))
    for seq, type, name in sorted(rows):
        head, output = f"  {seq:>{digits}}  {type:<{types}}  ", written.get(seq)
        done, place = results[seq]
        line = f"{head}{padded(printable(name), names)}  {done}{place}".rstrip()
        if place and most is not None and width(line) > most:
            line = f"{head}{padded(printable(name), names)}  {done}".rstrip()
            say(line, hang=len(head))
            say(f"      {place.strip()}")
        else:
            say(line, hang=len(head))
        if output is not None and output.dataset_id is not None:
            say(f"      registered as dataset {output.dataset_id} v{output.dataset_version}")


def _count(output: OutputResult) -> str:
    return f"{output.rows_written or 0:,}" if output.committed else ""


def _done(output: OutputResult | None, check: CheckResult | None, digits: int, root: Path) -> tuple[str, str]:
    """What an output or a check did, and where the output wrote. Counts of rows are right-aligned."""
    if output is None:
        return ("" if check is None else check.summary), ""
    rows = "row" if output.rows_written == 1 else "rows"
    state = f"{_count(output):>{digits}} {rows}" if output.committed else "not finished"
    replaced = f", replaced {', '.join(output.periods_replaced)}" if output.periods_replaced else ""
    return state, f" → {within(output.location, root)}{replaced}"


def _say_reads(snapshot: Snapshot, root: Path) -> None:
    for use in snapshot.resolver_snapshots:
        say(f"  reads {use.dataset_id} v{use.dataset_version}, table {use.table}")
        for location in use.locations:
            version, period = location.get("dataset_version"), location["period"]
            written = f" (version {version}, written for {period})" if version is not None and period else ""
            say(f"    {location['source']['type']} {within(location['target'], root)}{written}")
