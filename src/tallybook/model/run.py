"""Runs: one execution of a project for a period, its results, and the snapshot that makes it repeatable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from tallybook.model.base import Record
from tallybook.model.columns import ColumnType
from tallybook.model.state import Json, ProjectStatus
from tallybook.model.written import show

RunStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
ACTIVE_RUN_STATUSES: tuple[RunStatus, ...] = ("queued", "running")


class Owner(Record):
    """The process that executes a run. `started` tells it from a later process with the same pid."""

    host: str
    """The name of the machine."""
    pid: int
    """The number of the process."""
    started: str
    """When the process started."""

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


@dataclass(frozen=True)
class FirstRows:
    """The first rows that an output wrote, with the types of their columns."""

    columns: Mapping[str, ColumnType]
    rows: tuple[tuple[object, ...], ...]


class Run(Record):
    """One execution. `attempt` counts retries: only the process of the latest attempt may report about it."""

    id: str
    """The id of the run."""
    workspace_id: str
    """The workspace as the store knows it; the name may change."""
    project_id: str
    """The id of the project."""
    project_version: int
    """The version of the project."""
    project_status: ProjectStatus
    """The project's status when the run began; a run publishes nothing once that has changed."""
    calendar_id: str
    """The id of the calendar."""
    period: str
    """The period of the run."""
    status: RunStatus
    """How far the run is."""
    attempt: int
    """1, and one more for each retry."""
    id_epoch_ms: int
    """A millisecond number no other run of the store has: the timestamp part of the ids of its rows."""
    claim: int
    """Taken when the run is created and again by each retry. Of two runs of one output, the later claim wins."""
    run_timestamp: datetime
    """The time that expressions and new rows see, also in retries and replays."""
    as_of: date
    """The date bitemporal data is read at."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """The values of the project's parameters, as text."""
    environment: str | None = None
    """The environment of the workspace that the run belongs to; null for the workspace without one."""
    sandbox: bool
    """True if the outputs go to the sandbox, because the project is a draft or was run with `--draft`."""
    reopen_reason: str | None
    """Why a closed period was run again."""
    started_by: str | None = None
    """The user who started the run; null for runs of versions that did not keep it."""
    reason: str | None = None
    """Why the run was started, as given with `--reason`."""
    problem: Json | None
    """Why the run failed."""
    last_completed_operation: int | None
    """The number of the last operation that was done."""
    owner: Owner
    """The process that executes the run."""
    heartbeat_at: datetime
    """When that process last said that it is alive."""
    created_at: datetime
    """When the run was created."""
    started_at: datetime | None
    """When the run began to execute."""
    finished_at: datetime | None
    """When the run ended."""

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_RUN_STATUSES


class OperationResult(Record):
    """What an operation did; a count is None where knowing it would need a second pass over the data."""

    seq: int
    """The number of the operation."""
    name: str
    """The name of the operation."""
    type: str
    """The type of the operation."""
    rows_selected: int | None = None
    """The rows its selector chose."""
    rows_added: int | None = None
    """The rows it added."""
    rows_deleted: int | None = None
    """The rows it marked as deleted."""
    duration_ms: int | None = None
    """What an output cost, with everything that had to be computed for it. Null for other operations: Spark computes
    them with the outputs, and nobody can tell their share."""


class CheckResult(Record):
    """What a check found."""

    seq: int
    """The number of the check."""
    name: str
    """The name of the check."""
    condition: str
    """The condition that was tested."""
    unit: Literal["row", "group"]
    """What was tested: each row, or each group."""
    tested: int
    """How many rows or groups were tested."""
    failed: int
    """How many of them failed."""
    on_failure: Literal["fail", "warn"]
    """What a failure does: it ends the run, or it is a warning."""
    examples: tuple[dict[str, Any], ...] = ()
    """Up to five of those that failed, with their keys and values."""

    @property
    def passed(self) -> bool:
        return self.failed == 0

    @property
    def summary(self) -> str:
        """The counts in words, such as "2 of 40 groups failed"."""
        plural = "" if self.tested == 1 else "s"
        if self.passed:
            return f"{self.tested:,} {self.unit}{plural} tested"
        return f"{self.failed:,} of {self.tested:,} {self.unit}{plural} failed"

    @property
    def shown_examples(self) -> str:
        """The failures that are shown, on one line."""
        lines = (", ".join(f"{name} = {show(value)}" for name, value in one.items()) for one in self.examples)
        more = self.failed - len(self.examples)
        return "; ".join(lines) + (f"; and {more:,} more" if more else "")


class OutputResult(Record):
    """What an output wrote. Recorded first as an intent, then with `committed` once readers can see the rows."""

    seq: int
    """The number of the output operation."""
    location: str
    """Where it writes."""
    rows_written: int | None = None
    """The number of rows it wrote."""
    columns_written: tuple[str, ...] = ()
    """The columns it wrote."""
    dataset_id: str | None = None
    """The dataset that the rows were registered as."""
    dataset_version: int | None = None
    """The version of that dataset."""
    write_duration_ms: int | None = None
    """How long computing and writing took."""
    delta_version: int | None = None
    """The version of the Delta table that it made."""
    periods_replaced: tuple[str, ...] = ()
    """The periods whose rows it replaced, with `mode: replace_period`; none with another mode."""
    committed: bool = False
    """True once readers can see the rows."""


class RunEvent(Record):
    """Something that happened to a run: a change of status, or a warning."""

    at: datetime
    """When it happened."""
    attempt: int
    """The attempt it happened in."""
    event: str
    """The new status, or `warning`."""
    detail: Json | None
    """The problem of a failure, or the message of a warning."""


class DatasetUse(Record):
    """The version of a dataset a run reads."""

    dataset_id: str
    """The id of the dataset."""
    dataset_version: int
    """The version of the dataset."""


class ResolverSnapshot(Record):
    """How the rows of one table were found, and where they are, without secrets."""

    dataset_id: str
    """The id of the dataset."""
    dataset_version: int
    """The version of the dataset."""
    table: str
    """The name of the table."""
    source_period: str | None = None
    """The period it is read for, relative to that of the run, such as `prior`; null for the run's own."""
    source_as_of: str | None = None
    """When its rows must be valid, if the source says so: `period_end`, or `row` for a date of each working row."""
    pinned: bool | None = None
    """True if the project names the version whose rows are read; null in snapshots of versions that did not keep it."""
    periods: tuple[str, ...] = ()
    """The periods whose rows are read of a table by period."""
    resolver_id: str | None
    """The resolver; null for a registered dataset."""
    resolver_version: int | None
    """The version of the resolver."""
    rule: str | None
    """The rule that matched."""
    locations: tuple[Json, ...]
    """Where the rows are, each with its datasource and what tells whether it changed; for a registered dataset with
    the version, the period it was written for and the periods that are read from it."""


class Snapshot(Record):
    """Everything needed to execute a run again, as it was when the run started."""

    project: Json
    """The whole definition, operations and selectors verbatim."""
    project_version: int
    """The version of the project."""
    period: Json
    """The period of the run, with its days."""
    as_of: date
    """The date bitemporal data is read at."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """The values of the project's parameters, as text."""
    environment: str | None = None
    """The environment of the run; null for the workspace without one. Datasources are as they are in it."""
    run_timestamp: datetime
    """The time that expressions and new rows see."""
    datasets: tuple[DatasetUse, ...]
    """The versions of the datasets that are read."""
    input_pinned: bool = True
    """False if the rows of the input are those of the newest version of each period."""
    sandbox_datasets: tuple[Json, ...] = ()
    """Those of the datasets that a draft registered in the sandbox: the store does not have their versions."""
    resolver_snapshots: tuple[ResolverSnapshot, ...]
    """The tables that are read, and where."""
    destinations: dict[str, Json] = Field(default_factory=dict)
    """Where each output goes, by seq."""
    calendar: Json | None = None
    """The calendar of the run; null in snapshots of versions that did not keep it."""
    engine_version: str
    """The versions of Tallybook and Spark."""
    appended_before: tuple[str, ...] = ()
    """Runs that had appended for the same project and period before this one was asked to append again."""
