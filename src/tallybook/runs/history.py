"""Reads runs and versions of datasets from the store, to show them. Nothing here changes the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallybook.errors import ProblemError, did_you_mean, fail
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run, RunEvent, RunStatus, Snapshot
from tallybook.model.state import Definition, Registration
from tallybook.runs.run_guard import superseding
from tallybook.runs.stale import stale_runs
from tallybook.store.store import Store


@dataclass(frozen=True)
class RunList:
    """Runs, newest first, and the ids of all runs that have not ended though their process is gone."""

    runs: tuple[Run, ...] = ()
    dead: frozenset[str] = frozenset()
    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What was written anew since, in words, by the id of the run that read it before."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The rows that all outputs of a run wrote, by its id; a run that finished no output is left out."""
    more: int = 0
    """The number of older runs that a limit leaves out."""


@dataclass(frozen=True)
class RunDetails:
    """One run with everything the store knows about it."""

    run: Run
    operations: tuple[OperationResult, ...]
    outputs: tuple[OutputResult, ...]
    checks: tuple[CheckResult, ...]
    events: tuple[RunEvent, ...]
    snapshot: Snapshot | None
    """None if the run ended before its snapshot was taken."""
    is_dead: bool
    """True if the run has not ended though its process is gone."""
    stale: tuple[str, ...] = ()
    """What was written anew since the run read it, in words."""
    superseded_by: str | None = None
    """The id of a later run that has written, so that this one cannot be retried."""


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
    matching = store.count_runs(project_id=project, period=period, statuses=tuple(statuses))
    rows = store.rows_written([run.id for run in runs])
    return RunList(runs, _dead(store), stale_runs(store, runs), rows, matching - len(runs))


def run_details(store: Store | None, run_id: str) -> RunDetails:
    """Returns one run. Raises RunError if no run has the id."""
    if store is None:
        raise fail("RunNotFound", f"no run has the id {run_id}", hint="nothing has run in this workspace")
    run = store.run(run_id)
    superseded = superseding(store, run)
    return RunDetails(
        run=run,
        operations=store.operation_results(run_id),
        outputs=store.output_results(run_id),
        checks=store.check_results(run_id),
        events=store.run_events(run_id),
        snapshot=_snapshot(store, run_id),
        is_dead=run_id in _dead(store),
        stale=stale_runs(store, [run]).get(run_id, ()),
        superseded_by=None if superseded is None else superseded[0].id,
    )


def stale_run(store: Store | None, project: str, period: str) -> tuple[Run, tuple[str, ...]] | None:
    """Returns the run of a project and period that is stale, and what was written anew since; None if there is none."""
    runs = store.runs(project_id=project, period=period, statuses=("completed",)) if store is not None else ()
    stale = stale_runs(store, runs) if store is not None else {}
    return next(((run, stale[run.id]) for run in runs if run.id in stale), None)


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
