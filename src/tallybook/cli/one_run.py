"""What people read about one run: what it did, the first rows of its outputs, and its record."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli.layout import Column, data_table, duration, is_number, number_text
from tallybook.cli.screen import counted, room, say
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
    run = document.run
    _say_head(run)
    _say_operations(document.operations, document.outputs, document.checks, root)
    say_warnings(document.warnings)
    if run.sandbox:
        is_draft = run.project_status == "draft"
        say(f"  {'the project is a draft, so its' if is_draft else 'the'} outputs went to the sandbox")
        if is_draft:
            say(f"  `tallybook activate {run.project_id}` makes the next run write to its destinations")


def say_warnings(warnings: Iterable[str]) -> None:
    """Prints the warnings of a run below it."""
    for warning in warnings:
        say("  ", Marked("warning:", "warning"), f" {warning}")


def say_first_rows(outputs: Iterable[tuple[int, FirstRows]]) -> None:
    """Prints the first rows of outputs."""
    for seq, first in outputs:
        say()
        say(Marked(f"first rows of output {seq}:", "title"))
        columns = [Column(name, right=type.is_number) for name, type in first.columns.items()]
        rows = [[number_text(value) if is_number(value) else show(value) for value in row] for row in first.rows]
        most = room()
        for line in data_table(columns, rows, None if most is None else most - 2):
            say("  ", *line)


def say_record(details: RunDetailsDocument, root: Path) -> None:
    """Prints everything that is recorded of a run."""
    from tallybook.model.run import Snapshot

    run, snapshot = details.run, details.snapshot
    _say_head(run, (", but its process is gone" if details.dead else "") + (", in the sandbox" if run.sandbox else ""))
    for reason in details.stale:
        say("  ", Marked("stale:", "warning"), f" {reason}")
    by = f" by {run.started_by}" if run.started_by is not None else ""
    why = f": {run.reason}" if run.reason else ""
    say(f"  started {run.run_timestamp:%Y-%m-%d %H:%M:%S} UTC{by}{why}")
    say(f"  as of {run.as_of}, attempt {run.attempt}, {run.owner}")
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
        if isinstance(snapshot, Snapshot):
            say(f"  `tallybook run --retry {run.id}` continues it")


def seconds_of(run: Run) -> float | None:
    """Returns how long a run took; None if it has not ended."""
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()


def within(text: str, root: Path) -> str:
    """Returns a text in which paths inside the workspace are relative to it."""
    return text.replace(f"{root}/", "")


def _say_head(run: Run, notes: str = "") -> None:
    seconds = seconds_of(run)
    took = f" in {duration(seconds)}" if seconds is not None else ""
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
    names = max((width(printable(name)) for _, _, name in rows), default=0)
    for seq, type, name in sorted(rows):
        head, output, check = f"  {seq:>{digits}}  {type:<{types}}  ", written.get(seq), tested.get(seq)
        done, place = _done(output, check, root)
        line = f"{head}{padded(printable(name), names)}  {done}{place}".rstrip()
        most = room()
        if place and most is not None and width(line) > most:
            line = f"{head}{padded(printable(name), names)}  {done}".rstrip()
            say(line, hang=len(head))
            say(f"      {place.strip()}")
        else:
            say(line, hang=len(head))
        if output is not None and output.dataset_id is not None:
            say(f"      registered as dataset {output.dataset_id} v{output.dataset_version}")


def _done(output: OutputResult | None, check: CheckResult | None, root: Path) -> tuple[str, str]:
    """What an output or a check did, and where the output wrote."""
    if output is None:
        return ("" if check is None else check.summary), ""
    state = counted(output.rows_written or 0, "row") if output.committed else "not finished"
    replaced = f", replaced {', '.join(output.periods_replaced)}" if output.periods_replaced else ""
    return state, f" → {within(output.location, root)}{replaced}"


def _say_reads(snapshot: Snapshot, root: Path) -> None:
    for use in snapshot.resolver_snapshots:
        say(f"  reads {use.dataset_id} v{use.dataset_version}, table {use.table}")
        for location in use.locations:
            version, period = location.get("dataset_version"), location["period"]
            written = f" (version {version}, written for {period})" if version is not None and period else ""
            say(f"    {location['source']['type']} {within(location['target'], root)}{written}")
