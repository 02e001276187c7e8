"""`tallybook run`: runs projects for periods, with progress and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, ReasonOption, WorkspaceOption, app
from tallybook.cli.help import HelpfulCommand
from tallybook.cli.parameters import SetOption, given_parameters
from tallybook.cli.screen import emit, is_watched, say, say_progress, say_total
from tallybook.cli.watch import EventsOption, Observers, watching
from tallybook.errors import Terminated, UsageError

if TYPE_CHECKING:
    from tallybook.documents.runs import RunDocument
    from tallybook.workspace import Workspace


class _RunCommand(HelpfulCommand):
    """`--retry` without a value means the last batch."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for index, arg in enumerate(args):
            following = args[index + 1] if index + 1 < len(args) else "-"
            if arg == "--retry" and following.startswith("-"):
                args = [*args[: index + 1], _LAST, *args[index + 1 :]]
                break
        return super().parse_args(ctx, args)


_LAST = "last"


@app.command(cls=_RunCommand)
def run(
    projects: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROJECT", help="The projects.", autocompletion=completion.projects),
    ] = None,
    all_projects: Annotated[bool, typer.Option("--all", help="All projects that are active.")] = False,
    period: Annotated[
        list[str] | None,
        typer.Option(
            "--period",
            "-p",
            help="A period, such as 2026-01, or a range: 2026-01..2026-12; may be repeated.",
            autocompletion=completion.periods,
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="The date bitemporal data is read at; by default the period's first day.",
        ),
    ] = None,
    parameters: SetOption = None,
    show: Annotated[
        int, typer.Option(min=0, metavar="N", show_default=False, help="Print the first N rows of each output.")
    ] = 0,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="[BATCH|RUN]",
            autocompletion=completion.unfinished_runs,
            help="Run what a batch did not complete, by default the last one; or continue a run. Ids may be shortened.",
        ),
    ] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Run again only what is stale or becomes stale.")] = False,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Show the order of the runs; run nothing.")] = False,
    parallel: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run up to N projects at the same time, in one Spark session.")
    ] = 1,
    reopen_reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The reason to run a closed period again; recorded with the run.")
    ] = None,
    reason: ReasonOption = None,
    again: Annotated[
        bool, typer.Option("--again", help="Append once more what an earlier run has appended for the period.")
    ] = False,
    draft: Annotated[
        bool, typer.Option("--draft", help="Write to the sandbox, even if the project is or was active.")
    ] = False,
    events: EventsOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Run projects for periods, each after those whose results it reads. A draft's outputs go to the sandbox."""
    from tallybook.workspace import Workspace

    asked = projects or all_projects
    if (retry is None) == (not asked):
        raise UsageError("name projects and a period, or a run to retry", "tallybook run PROJECT --period 2026-01")
    if retry is None and not period:
        name = "--all" if all_projects else " ".join(projects or ())
        raise UsageError("no period is given", f"tallybook run {name} --period 2026-01")
    if retry is not None and (period or as_of or parameters or draft or stale or reason):
        raise UsageError(
            "--period, --as-of, --set, --draft, --stale and --reason cannot be given with --retry, which uses those of "
            "its run or batch",
            f"tallybook run --retry {retry}",
        )
    opened = Workspace.open(workspace, warm=True)
    many: dict[str, Any] = {"all_projects": all_projects, "stale": stale, "draft": draft}
    names, periods = list(dict.fromkeys(projects or ())), list(dict.fromkeys(period or ()))
    is_one = len(names) == len(periods) == 1 and not (all_projects or stale or plan_only or _RANGE in periods[0])
    own: dict[str, Any] = {"as_of": as_of.date() if as_of else None, "parameters": given_parameters(parameters)}
    own |= {"reopen_reason": reopen_reason, "reason": reason, "again": again}
    batch = None if retry == _LAST else retry
    with watching(events, progress=not json and is_one) as observers:
        if is_one:
            return _run_one(
                opened, partial(opened.run, *names, *periods, draft=draft, **own), observers, show, json=json
            )
        if retry is not None and batch is not None and not opened.is_batch(batch):
            opened = opened.in_environment_of(batch)
            options: dict[str, Any] = {"reopen_reason": reopen_reason, "again": again}
            return _run_one(opened, partial(opened.retry, batch, **options), observers, show, json=json)
        if plan_only:
            planned = (
                opened.plan_retry(batch, reopen_reason=reopen_reason)
                if retry is not None
                else opened.plan_many(names, periods, reopen_reason=reopen_reason, **many)
            )
            return _say_plan(planned, json=json)

        def details(result: Any) -> None:
            if len(names) == 1 and not all_projects:
                say_work(_document(result), opened.root)
            else:
                say_warnings(result.warnings)
            if show:
                say_first_rows(opened.first_rows(result, show))

        from tallybook.cli.many import say_result, watcher
        from tallybook.cli.one_run import say_first_rows, say_warnings, say_work
        from tallybook.documents.batches import BatchDocument

        watched = watcher(observers, details, json=json)
        with _cancellable("`tallybook run --retry` runs what is not completed"):
            if retry is not None:
                changed: dict[str, Any] = {"reopen_reason": reopen_reason, "again": again}
                done = opened.retry_many(batch, parallel=parallel, watcher=watched, **changed)
            else:
                done = opened.run_many(names, periods, parallel=parallel, watcher=watched, **many, **own)
        return say_result(BatchDocument.of(done), done.problems, json=json)


_RANGE = ".."


def _say_plan(plan: Any, *, json: bool) -> int:
    from tallybook.cli.many import say_plan
    from tallybook.documents.batches import BatchPlanDocument

    return say_plan(BatchPlanDocument.of(plan), json=json)


def _document(result: Any) -> RunDocument:
    from tallybook.documents.runs import RunDocument

    return RunDocument.of(result)


@contextmanager
def _cancellable(what_then: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, Terminated):
        say(f"cancelled; {what_then}", error=True)
        raise


def _run_one(opened: Workspace, start: Callable[..., Any], observers: Observers, show: int, *, json: bool) -> int:
    """Runs or continues one run."""
    from tallybook.documents.runs import CompletedRuns

    with _cancellable("`tallybook runs --status cancelled` shows how far it got"):
        result = start(observers=observers())
    if json:
        emit(CompletedRuns(runs=(_document(result),)))
        return 0
    from tallybook.cli.one_run import say_first_rows, say_run

    say_run(_document(result), opened.root)
    if show:
        if is_watched():
            say_progress("reading the first rows …")
        say_first_rows(opened.first_rows(result, show))
    say_total()
    return 0
