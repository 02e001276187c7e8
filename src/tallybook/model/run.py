"""Runs: one execution of a project for a period, what it did, and the snapshot that lets it be repeated."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from tallybook.model.base import Entity
from tallybook.model.state import Json, ProjectStatus

RunStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
ACTIVE_RUN_STATUSES: tuple[RunStatus, ...] = ("queued", "running")


class Owner(Entity):
    """The process that executes a run. `started` tells it from a later process with the same pid."""

    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


class Run(Entity):
    """One execution. `attempt` counts retries: only the process of the latest attempt may report about it."""

    id: str
    workspace_id: str
    """The workspace as the store knows it; the name may change."""
    project_id: str
    project_version: int
    project_status: ProjectStatus
    """The project's status when the run began; a run publishes nothing once that has changed."""
    calendar_id: str
    period: str
    status: RunStatus
    attempt: int
    id_epoch_ms: int
    """A millisecond number no other run of the store has: the timestamp part of the ids of its rows."""
    claim: int
    """Taken when the run is created and again by each retry. Of two runs of one output, the later claim wins."""
    run_timestamp: datetime
    as_of: date
    sandbox: bool
    reopen_reason: str | None
    problem: Json | None
    last_completed_operation: int | None
    owner: Owner
    heartbeat_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_RUN_STATUSES


class OperationResult(Entity):
    """What an operation did; a count is None where knowing it would need a second pass over the data."""

    seq: int
    name: str
    type: str
    rows_selected: int | None = None
    rows_added: int | None = None
    rows_deleted: int | None = None
    duration_ms: int | None = None
    """What an output cost, with everything that had to be computed for it. None for other operations: Spark computes
    them with the outputs, and nobody can tell their share."""


class OutputResult(Entity):
    """What an output wrote. Recorded first as an intent, then with `committed` once readers can see the rows."""

    seq: int
    place: str
    rows_written: int | None = None
    columns_written: tuple[str, ...] = ()
    dataset_id: str | None = None
    dataset_version: int | None = None
    write_duration_ms: int | None = None
    delta_version: int | None = None
    committed: bool = False


class RunEvent(Entity):
    """Something that happened to a run: a change of status, or a warning."""

    at: datetime
    attempt: int
    event: str
    detail: Json | None


class DatasetUse(Entity):
    """The version of a dataset a run reads."""

    dataset_id: str
    dataset_version: int


class ResolverSnapshot(Entity):
    """How the place of one table was found, and the places themselves, without secrets."""

    dataset_id: str
    dataset_version: int
    table: str
    resolver_id: str | None
    resolver_version: int | None
    rule: str | None
    locations: tuple[Json, ...]


class Snapshot(Entity):
    """Everything needed to execute a run again, as it was when the run started."""

    project: Json
    """The whole definition, operations and selectors verbatim."""
    project_version: int
    period: Json
    as_of: date
    run_timestamp: datetime
    datasets: tuple[DatasetUse, ...]
    resolver_snapshots: tuple[ResolverSnapshot, ...]
    destinations: dict[str, Json] = Field(default_factory=dict)
    """Where each output goes, by seq."""
    calendar: Json | None = None
    """The calendar whose periods the places are of; None in snapshots of versions that did not keep it."""
    engine_version: str
    appended_before: tuple[str, ...] = ()
    """Runs that had appended for the same project and period; this one was told to append once more."""
