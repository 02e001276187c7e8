"""`tallybook test`: the scenarios of the workspace."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, is_watched, say
from tallybook.errors import UsageError, ValidationError
from tallybook.text import Marked

if TYPE_CHECKING:
    from tallybook.scenarios.load import Case
    from tallybook.scenarios.suite import Outcome
    from tallybook.workspace import Workspace


@app.command()
def test(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]…", help="Files or folders; by default the whole workspace.")
    ] = None,
    text: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Only scenarios with this text in their name or file.")
    ] = "",
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a JUnit XML report.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write what comes out into scenarios that expect nothing yet.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Run scenarios: given rows, a project and what must come out. No output is written anywhere."""
    from tallybook.scenarios.report import document, summary_text
    from tallybook.scenarios.report import junit as junit_text
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    cases = _chosen(opened, paths or [], text)
    if junit is not None:
        _refuse_unwritable(junit)
    begun = time.monotonic()
    outcomes = _judged(opened, cases, quiet=json, record=record) if cases else []
    if json:
        emit(document(outcomes))
    else:
        if outcomes:
            say()
        say(summary_text(outcomes, time.monotonic() - begun))
    if junit is not None:
        junit.write_text(junit_text(outcomes, opened.name), encoding="utf-8")
    return 0 if all(outcome.status == "passed" for outcome in outcomes) else 1


def _refuse_unwritable(file: Path) -> None:
    """Before anything runs, for a report that nobody can keep is of no use."""
    try:
        file.open("a").close()
    except OSError as error:
        raise UsageError(f"'{file}' cannot be written: {error.strerror}") from None


def _chosen(workspace: Workspace, paths: list[Path], text: str) -> list[Case]:
    """The scenarios asked for. A file that cannot be read might hold some, so it is an error."""
    from tallybook.scenarios.check import read_cases

    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise UsageError(f"there is no file or folder {missing.absolute()}")
    root = workspace.root.resolve()

    def within(file: str) -> bool:
        around = (root / file, *(root / file).parents)
        return not paths or any(place.samefile(path) for path in paths for place in around)

    unread = [p for p in workspace.definitions.problems if p.type == "InvalidYaml" and p.place and within(p.place.file)]
    if unread:
        raise ValidationError(unread)
    cases = [case for case in read_cases(workspace.checked) if within(case.file)]
    chosen = [case for case in cases if text.lower() in f"{case.file} {case.name}".lower()]
    if not chosen and (paths or text):
        raise UsageError("no scenario is meant by that", f"the workspace has {len(workspace.definitions.scenarios)}")
    return chosen


def _judged(workspace: Workspace, cases: list[Case], *, quiet: bool, record: bool) -> list[Outcome]:
    """The outcomes; with `record`, without those of scenarios that were written down."""
    from tallybook.scenarios.suite import judge_all, start_engine

    if is_watched():
        say("starting Spark …", error=True)
    settings = workspace.definitions.settings
    engine = start_engine(settings.spark if settings else None)
    outcomes, to_record = [], []
    for outcome in judge_all(cases, engine):
        if record and outcome.actual is not None and outcome.case.body.expect is None:
            to_record.append(outcome)
            continue
        outcomes.append(outcome)
        if not quiet:
            _say_outcome(outcome)
    _record(workspace, to_record, quiet=quiet)
    return outcomes


def _say_outcome(outcome: Outcome) -> None:
    from tallybook.scenarios.report import failure_lines

    passed = outcome.status == "passed"
    head = Marked(f"{outcome.status:<7}", "passed" if passed else "failed")
    say(head, f" {outcome.case.file}:{outcome.case.part.place(key=True).line}  {outcome.case.name}")
    if not passed:
        say()
        for line in failure_lines(outcome):
            say(*line)
        say()


def _record(workspace: Workspace, outcomes: list[Outcome], *, quiet: bool) -> None:
    from tallybook.scenarios.record import record

    problems = record(workspace.root, outcomes)
    if problems:
        raise ValidationError(problems)
    for outcome in outcomes if not quiet else ():
        say(f"recorded {outcome.case.file}  {outcome.case.name}: review what it expects now")
