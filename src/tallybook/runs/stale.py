"""Finds runs whose inputs were written anew since: a registered dataset has newer rows for a period that they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.model.run import ResolverSnapshot, Run, Snapshot
from tallybook.model.state import Registration
from tallybook.runs.registered import RegisteredDatasets
from tallybook.runs.snapshot import calendar_then
from tallybook.store.store import Store


def stale_runs(store: Store, runs: Iterable[Run]) -> dict[str, tuple[str, ...]]:
    """Returns what was written anew, in words, by the id of the run that read it before. A run that was repeated since,
    failed, or went to the sandbox is not stale: nobody relies on it."""
    registrations = store.registrations()
    if not registrations:
        return {}
    newest: dict[tuple[str, str, str], str] = {}
    for run in store.runs(statuses=("completed",)):
        if not run.sandbox:
            newest.setdefault((run.project_id, run.calendar_id, run.period), run.id)
    relied_on = set(newest.values())
    found = {run.id: written_anew(store.snapshot(run.id), registrations) for run in runs if run.id in relied_on}
    return {id: reasons for id, reasons in found.items() if reasons}


def written_anew(snapshot: Snapshot, registrations: Sequence[Registration]) -> tuple[str, ...]:
    """Returns the inputs of a run that a new run would read from other versions of registered datasets, in words."""
    tables = (table for table in snapshot.resolver_snapshots if table.pinned is False)
    return tuple(dict.fromkeys(reason for table in tables for reason in _newer(snapshot, table, registrations)))


def _newer(snapshot: Snapshot, table: ResolverSnapshot, registrations: Sequence[Registration]) -> Iterator[str]:
    read = [Location.from_json(body) for body in table.locations]
    versions = {location.dataset_version for location in read if location.dataset_version is not None}
    if not versions:
        return
    of_dataset = [entry for entry in registrations if entry.dataset_id == table.dataset_id]
    if table.periods:
        calendar = calendar_then(snapshot, GREGORIAN)
        periods = [calendar.period(name) for name in table.periods]
        now, _missing = RegisteredDatasets(of_dataset).by_period(table.dataset_id, calendar).of(periods)
        anew = {location.dataset_version for location in now} - versions
        yield from (_said(entry) for entry in of_dataset if entry.version in anew)
    elif table.dataset_id != snapshot.project["input_dataset_id"]:  # an active project is pinned to its input version
        of_same = {(entry.calendar_id, entry.period) for entry in of_dataset if entry.version in versions}
        later = [entry for entry in of_dataset if entry.version > max(versions)]
        again = [entry for entry in later if (entry.calendar_id, entry.period) in of_same]
        if again:
            yield _said(max(again, key=lambda entry: entry.version))


def _said(entry: Registration) -> str:
    return f"'{entry.dataset_id}' was written anew for {entry.period}: version {entry.version}, run {entry.run_id}"
