"""Reads runs and versions of datasets from the store, to show them. Nothing here changes the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallybook.errors import ProblemError, did_you_mean, fail
from tallybook.model.run import OperationResult, OutputResult, Run, RunEvent, RunStatus, Snapshot
from tallybook.model.state import Definition, Registration
from tallybook.store.store import Store


@dataclass(frozen=True)
class RunList:
    """Runs, newest first, and the ids of all runs that have not ended though their process is gone."""

    runs: tuple[Run, ...] = ()
    dead: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RunDetails:
    """One run with everything the store knows about it."""

    run: Run
    operations: tuple[OperationResult, ...]
    outputs: tuple[OutputResult, ...]
    events: tuple[RunEvent, ...]
    snapshot: Snapshot | None
    """None if the run ended before its snapshot was taken."""
    is_dead: bool
    """True if the run has not ended though its process is gone."""


@dataclass(frozen=True)
class DatasetVersion:
    """A version of a dataset, and the output that registered it; None if it comes from a file."""

    definition: Definition
    registration: Registration | None


def list_runs(
    store: Store | None, project: str | None, period: str | None, statuses: Sequence[RunStatus], limit: int | None
) -> RunList:
    """Returns the newest runs that meet all conditions."""
    if store is None:
        return RunList()
    runs = store.runs(project_id=project, period=period, statuses=tuple(statuses), limit=limit)
    return RunList(runs, _dead(store))


def run_details(store: Store | None, run_id: str) -> RunDetails:
    """Returns one run. Raises RunError if no run has the id."""
    if store is None:
        raise fail("RunNotFound", f"no run has the id {run_id}", hint="nothing has run in this workspace")
    return RunDetails(
        run=store.run(run_id),
        operations=store.operation_results(run_id),
        outputs=store.output_results(run_id),
        events=store.run_events(run_id),
        snapshot=_snapshot(store, run_id),
        is_dead=run_id in _dead(store),
    )


def latest_datasets(store: Store | None) -> tuple[DatasetVersion, ...]:
    """Returns the newest version of every dataset."""
    return _with_registrations(store, store.all_latest("dataset")) if store is not None else ()


def dataset_versions(store: Store | None, dataset_id: str) -> tuple[DatasetVersion, ...]:
    """Returns all versions of a dataset, oldest first. Raises RunError if none is recorded."""
    versions = store.versions("dataset", dataset_id) if store is not None else ()
    if store is None or not versions:
        recorded = [definition.id for definition in store.all_latest("dataset")] if store is not None else []
        hint = did_you_mean(dataset_id, recorded) or "run `tallybook apply`"
        raise fail("DatasetNotFound", f"no dataset '{dataset_id}' is recorded", hint=hint)
    return _with_registrations(store, versions)


def _with_registrations(store: Store, versions: Sequence[Definition]) -> tuple[DatasetVersion, ...]:
    registered = {(entry.dataset_id, entry.version): entry for entry in store.registrations()}
    return tuple(DatasetVersion(version, registered.get((version.id, version.version))) for version in versions)


def _snapshot(store: Store, run_id: str) -> Snapshot | None:
    try:
        return store.snapshot(run_id)
    except ProblemError:
        return None


def _dead(store: Store) -> frozenset[str]:
    return frozenset(run.id for run in store.dead_runs())
