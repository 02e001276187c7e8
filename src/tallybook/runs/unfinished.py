"""Finds the active projects that are not done with a period: they have not run for it, or their run is stale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallybook.errors import RunError
from tallybook.model.period import Calendar, Period, uncovered_days
from tallybook.model.run import Run
from tallybook.runs.stale import stale_runs
from tallybook.store.store import Store


@dataclass(frozen=True)
class Unfinished:
    """An active project and why it is not done with a period."""

    project: str
    reason: str


def unfinished_projects(store: Store, calendar: Calendar, period: Period) -> tuple[Unfinished, ...]:
    """Returns the active projects that have not run for a period, for a longer one around it, or for all its parts; and
    those whose runs for it are stale."""
    return tuple(_unfinished(store, calendar, period))


def _unfinished(store: Store, calendar: Calendar, period: Period) -> Iterator[Unfinished]:
    runs = _last_runs(store, calendar)
    inside = {
        project: [run for run, of in found if period.contains(of) or of.contains(period)]
        for project, found in runs.items()
    }
    stale = stale_runs(store, [run for found in inside.values() for run in found])
    for state in store.recorded().states.values():
        if state.status not in ("active", "conflict"):
            continue
        found = runs.get(state.project_id, [])
        around = any(of.contains(period) for _, of in found)
        parts = [of for _, of in found if period.contains(of)]
        if not around and (not parts or uncovered_days(period, parts)):
            missing = "" if not parts else " for the whole period"
            yield Unfinished(state.project_id, f"has not run{missing}")
        for run in inside.get(state.project_id, []):
            if run.id in stale:
                yield Unfinished(state.project_id, f"is stale for {run.period}: {stale[run.id][0]}")


def _last_runs(store: Store, calendar: Calendar) -> dict[str, list[tuple[Run, Period]]]:
    """Returns the newest completed run of each project and period, with the period."""
    newest: dict[tuple[str, str], Run] = {}
    for run in store.runs(statuses=("completed",)):
        if not run.sandbox and run.calendar_id == calendar.id:
            newest.setdefault((run.project_id, run.period), run)
    found: dict[str, list[tuple[Run, Period]]] = {}
    for (project, name), run in newest.items():
        try:
            found.setdefault(project, []).append((run, calendar.period(name)))
        except RunError:  # the calendar has lost the period
            continue
    return found
