"""Many runs on the command line: the order as a table, a line for each run that ends, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from tallybook.cli.layout import Cell, Column, duration, table, table_width
from tallybook.cli.one_run import STATUS_ROLES, say_sandbox
from tallybook.cli.screen import (
    clear_progress,
    counted,
    emit,
    is_watched,
    room,
    say,
    say_lines,
    say_problems,
    say_progress,
    say_total,
    say_warning,
)
from tallybook.cli.watch import Observers
from tallybook.engine.events import Event, Observer, StepStarted
from tallybook.errors import ProblemError, TallybookError
from tallybook.exit_codes import common_exit
from tallybook.text import Marked
from tallybook.workspace.many import BatchWatcher

if TYPE_CHECKING:
    from tallybook.documents.batches import BatchDocument, BatchPlanDocument, LeftOutDocument

Details = Callable[[Any], None]
"""Prints what one completed run did."""


def say_plan(plan: BatchPlanDocument, *, json: bool) -> int:
    """Prints the order of a batch that is not run."""
    if json:
        emit(plan)
        return 0
    rows = [
        [str(run.number), run.project, run.period, _items((need.project, need.period) for need in run.needs)]
        for run in plan.order
    ]
    if rows:
        columns = [Column("", right=True), Column("project"), Column("period"), Column("needs")]
        beside = table_width(columns[:3], [cells[:3] for cells in rows]) + 2
        kept = 4 if any(cells[3] for cells in rows) else 3
        for line in table(columns[:kept], [cells[:kept] for cells in rows]):
            say(*line, hang=beside)
    else:
        say("nothing to run")
    _say_notes(plan.left_out, plan.warnings)
    return 0


def say_result(document: BatchDocument, errors: Sequence[TallybookError], *, json: bool) -> int:
    """Prints the summary of a batch, and returns the exit code."""
    code = common_exit(error.exit for error in errors).code
    if json:
        emit(document)
        return code
    counts = {status: sum(1 for item in document.items if item.status == status) for status in _STATUSES}
    if document.items:
        say()
        most = room()
        full = _table(document)
        say_lines(table(*(full if most is None or table_width(*full) <= most else _table(document, is_narrow=True))))
        said = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
        say(f"{counted(len(document.items), 'run')}: {said}")
    else:
        say("0 runs: nothing to run")
    for run in {completed.run.project_id: completed.run for completed in document.runs}.values():
        say_sandbox(run, f"project {run.project_id}")
    _say_notes(document.left_out, document.warnings)
    say_total()
    if len(document.items) > counts["completed"]:
        say(f"`tallybook run --retry {document.batch}` runs the rest", error=True)
    return code


_STATUSES = ("completed", "failed", "skipped", "cancelled", "pending")


def _table(document: BatchDocument, *, is_narrow: bool = False) -> tuple[list[Column], list[list[Cell]]]:
    """Returns the columns and rows of the summary. A narrow one has the beginning of ids, which is unique in a store:
    it is the time at which the run was recorded."""
    titles = ("project", "period", "status", "rows", "duration", "run")
    columns = [Column(title, right=title in ("rows", "duration")) for title in titles]
    rows: list[list[Cell]] = [
        [
            item.project,
            item.period,
            Marked(item.status, STATUS_ROLES.get(item.status, "title")),
            "" if item.rows is None else f"{item.rows:,}",
            duration(item.seconds),
            (item.run_id or "")[: _SHORT_ID if is_narrow else None],
        ]
        for item in document.items
    ]
    return columns, rows


_SHORT_ID = len("01a1e793-02c1")


def _say_notes(left_out: Sequence[LeftOutDocument], warnings: Sequence[str]) -> None:
    by_reason: dict[str, list[tuple[str, str | None]]] = {}
    for entry in left_out:
        by_reason.setdefault(entry.reason, []).append((entry.project, entry.period))
    for reason, items in by_reason.items():
        say(f"left out ({reason}): {_items(items)}")
    for warning in warnings:
        say_warning(warning)


def _items(items: Iterable[tuple[str, str | None]]) -> str:
    """Returns projects with their periods, in a line. Of many periods it names the first and the last: a year of a few
    projects would fill the screen."""
    by_project: dict[str, list[str]] = {}
    for project, period in items:
        by_project.setdefault(project, []).extend([] if period is None else [period])
    return ", ".join(word for project, periods in by_project.items() for word in _project_items(project, periods))


def _project_items(project: str, periods: Sequence[str]) -> list[str]:
    if len(periods) > _LISTED_PERIODS:
        return [f"{project} {periods[0]} to {periods[-1]} ({len(periods)} periods)"]
    return [f"{project} {period}" for period in periods] or [project]


_LISTED_PERIODS = 3


def watcher(observers: Observers, details: Details, *, json: bool) -> BatchWatcher:
    """Returns what prints the progress of a batch: a line for each run that ends, and what is running on a
    terminal."""
    shown = _Shown(details, json=json)
    return BatchWatcher(lambda item: (*observers(), *shown.observers(item)), shown.started, shown.ended)


class _Shown:
    """Prints one thing at a time, although runs end in several threads."""

    def __init__(self, details: Details, *, json: bool) -> None:
        self._details = details
        self._json = json
        self._lock = Lock()
        self._numbers: dict[Any, str] = {}

    def started(self, item: Any, number: int, count: int) -> None:
        with self._lock:
            self._numbers[item] = f"{number} of {count}"
            if not self._json and is_watched():
                say_progress(f"{number} of {count}: {item} …")

    def observers(self, item: Any) -> tuple[Observer, ...]:
        if self._json or not is_watched():
            return ()

        def show(event: Event) -> None:
            if isinstance(event, StepStarted):
                with self._lock:
                    say_progress(f"{self._numbers[item]}: {item}, {event.step.seq}. {event.step.name} …")

        return (show,)

    def ended(self, run: Any) -> None:
        if self._json:
            return
        with self._lock:
            if is_watched():
                clear_progress()
            head = f"{self._numbers[run.item]}: " if run.item in self._numbers else ""
            rows = f", {counted(run.rows, 'row')}" if run.rows is not None else ""
            why = f": it needs {run.because}" if run.because is not None else ""
            say(f"{head}{run.item} ", Marked(run.status, STATUS_ROLES.get(run.status, "title")), rows + why)
            if run.result is not None:
                self._details(run.result)
            if isinstance(run.error, ProblemError) and run.error.problems:
                say_problems(run.error.problems, error=True)
            elif run.error is not None:
                say(Marked("error:", "failed"), f" {run.error.message}", error=True)
