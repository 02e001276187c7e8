"""`tallybook test`: runs the scenarios of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, is_watched, room, say, say_progress, total_time
from tallybook.errors import UsageError
from tallybook.text import Marked, padded, printable, width

if TYPE_CHECKING:
    from tallybook.scenarios.load import Case
    from tallybook.scenarios.suite import Outcome


@app.command()
def test(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="Files or folders; by default the whole workspace.")
    ] = None,
    text: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Only scenarios with this text in their name or file.")
    ] = "",
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a JUnit XML report.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the results into scenarios that expect nothing yet.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Run scenarios: rows, a project, and the rows it must produce. No output is written."""
    from tallybook.documents.scenarios import TestReport
    from tallybook.scenarios.report import junit as junit_text
    from tallybook.scenarios.report import summary_text
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace, warm=True)
    cases = opened.scenarios(paths or (), text)
    if junit is not None:
        _refuse_unwritable(junit)
    places = max((width(_place(case)) for case in cases), default=0)
    outcomes: list[Outcome] = []
    to_record: list[Outcome] = []
    for outcome in opened.test(cases):
        if record and outcome.can_be_recorded:
            to_record.append(outcome)
            continue
        outcomes.append(outcome)
        if not json:
            _say_outcome(outcome, places)
        if is_watched() and len(outcomes) < len(cases):
            say_progress(f"{len(outcomes)} of {len(cases)} scenarios …")
    opened.record_scenarios(to_record)
    if json:
        emit(TestReport.of(outcomes))
    else:
        for outcome in to_record:
            say(f"recorded {outcome.case.file}  {outcome.case.name}: review the expected rows")
        if outcomes and outcomes[-1].status == "passed":
            say()
        all_passed = all(outcome.status == "passed" for outcome in outcomes)
        say(Marked(summary_text(outcomes, total_time()), "passed" if all_passed else "failed"))
    if junit is not None:
        junit.write_text(junit_text(outcomes, opened.name), encoding="utf-8")
    return 0 if all(outcome.status == "passed" for outcome in outcomes) else 1


def _refuse_unwritable(file: Path) -> None:
    """Raises UsageError if the report cannot be written, before anything runs."""
    try:
        file.open("a").close()
    except OSError as error:
        raise UsageError(f"'{file}' cannot be written: {error.strerror}") from None


def _place(case: Case) -> str:
    return printable(f"{case.file}:{case.part.place(key=True).line}")


def _say_outcome(outcome: Outcome, places: int) -> None:
    """Prints a line for a scenario, with its name beside the place, which takes so many columns."""
    from tallybook.scenarios.report import failure_lines

    passed = outcome.status == "passed"
    head = Marked(f"{outcome.status:<7}", "passed" if passed else "failed")
    hang = len("passed   ") + places + 1
    say(head, f" {padded(_place(outcome.case), places)}  {outcome.case.name}", hang=hang if hang <= _MOST_HANG else 10)
    if not passed:
        most = room()
        say()
        for line in failure_lines(outcome) if most is None else failure_lines(outcome, most):
            say(*line)
        say()


_MOST_HANG = 45
"""Beside longer places there is too little room for a name of several lines."""
