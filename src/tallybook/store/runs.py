"""Creates, starts, finishes, retries and lists runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tallybook.errors import Problem, RunError, StoreError, fail
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.run import ACTIVE_RUN_STATUSES, Owner, Run, RunEvent, RunStatus, Snapshot
from tallybook.model.state import canonical_json
from tallybook.project.lifecycle import check_open, check_project_runs
from tallybook.store.active import (
    ActiveRuns,
    add_event,
    concurrent,
    current_owner,
    fail_run,
    get_run,
    move_run,
    owned_run,
    run_from_row,
    run_not_found,
)
from tallybook.store.changes import current_user
from tallybook.store.database import now
from tallybook.store.lifecycle import changed_statuses, check_project_as_begun, check_version, known_project
from tallybook.store.tables import ID_CLOCK, RUN_EVENTS, RUNS, SNAPSHOTS


class Runs(ActiveRuns):
    """Records runs. A process passes the `Run` that it was given, so a process whose run was declared dead and retried
    elsewhere is refused."""

    def create_run(
        self,
        project_id: str,
        project_version: int,
        period: str,
        *,
        calendar_id: str,
        as_of: date,
        parameters: Mapping[str, str] = MappingProxyType({}),
        run_timestamp: datetime | None = None,
        sandbox: bool = False,
        reopen_reason: str | None = None,
        reason: str | None = None,
        nested: NestedPeriod | None = None,
        owner: Owner | None = None,
    ) -> Run:
        """Creates a queued run. Refused if the project or period may not run, or another run of both is active. A draft
        always runs in the sandbox; with `sandbox` any project does. `run_timestamp` is by default the time of
        creation. With `nested` the periods around and inside the period must be open too."""
        self.fail_dead_runs()
        try:
            with self._write() as connection:
                state = known_project(connection, self.workspace_id, project_id)
                check_version(state, project_version)
                check_project_runs(state, draft=sandbox)
                changed = changed_statuses(connection, self.workspace_id, calendar_id)
                status = check_open(period, nested, changed, reopen_reason)
                epoch_ms = _next_epoch_ms(connection)
                values = self._owned_by(connection, owner) | {
                    "id": _uuid7(epoch_ms),
                    "workspace_id": self.workspace_id,
                    "project_id": project_id,
                    "project_version": project_version,
                    "project_status": state.status,
                    "calendar_id": calendar_id,
                    "period": period,
                    "status": "queued",
                    "attempt": 1,
                    "id_epoch_ms": epoch_ms,
                    "claim": epoch_ms,
                    "run_timestamp": run_timestamp or _utc(epoch_ms),
                    "as_of": as_of,
                    "parameters": dict(parameters),
                    "environment": self.environment,
                    "sandbox": sandbox or state.status == "draft",
                    "reopen_reason": reopen_reason if status == "closed" else None,
                    "started_by": current_user(),
                    "reason": (reason or "").strip() or None,
                    "created_at": now(),
                }
                run = run_from_row(connection.execute(sa.insert(RUNS).values(values).returning(RUNS)).one())
                add_event(connection, run, "queued")
                return run
        except IntegrityError:
            raise self._concurrent(project_id, period) from None

    def start_run(self, run: Run, snapshot: Snapshot) -> Run:
        """Changes a queued run to running, and records its snapshot."""
        with self._write() as connection:
            status = owned_run(connection, run).status
            if status in ("failed", "cancelled"):
                raise StoreError(f"run {run.id} is {status}: it can be retried, not started")
            started = move_run(connection, run, "running", started_at=now())
            connection.execute(
                sa.insert(SNAPSHOTS).values(
                    run_id=run.id, body=canonical_json(snapshot.model_dump(mode="json")), created_at=now()
                )
            )
            return started

    def complete_run(self, run: Run) -> Run:
        """Changes a running run to completed."""
        with self._write() as connection:
            return move_run(connection, run, "completed", finished_at=now())

    def fail_run(self, run: Run, problem: Problem) -> Run:
        """Changes a queued or running run to failed, with the reason."""
        with self._write() as connection:
            return fail_run(connection, run, problem)

    def cancel_run(self, run: Run) -> Run:
        """Changes a queued or running run to cancelled."""
        with self._write() as connection:
            return move_run(connection, run, "cancelled", finished_at=now())

    def warn_run(self, run: Run, message: str) -> None:
        """Records a warning: something a user should know that does not fail the run."""
        with self._write() as connection:
            owned_run(connection, run)
            add_event(connection, run, "warning", {"message": message})

    def retry_run(
        self,
        run_id: str,
        *,
        reopen_reason: str | None = None,
        nested: NestedPeriod | None = None,
        owner: Owner | None = None,
    ) -> Run:
        """Changes a failed or cancelled run to running in this process: same id, same snapshot, next attempt."""
        self.fail_dead_runs()
        run = self.run(run_id)
        try:
            with self._write() as connection:
                _check_retry(connection, run)
                reason = reopen_reason or run.reopen_reason
                check_open(run.period, nested, changed_statuses(connection, self.workspace_id, run.calendar_id), reason)
                return move_run(
                    connection,
                    run,
                    "running",
                    attempt=run.attempt + 1,
                    claim=_next_epoch_ms(connection),
                    problem=None,
                    finished_at=None,
                    reopen_reason=reason,
                    **self._owned_by(connection, owner),
                )
        except IntegrityError:
            raise self._concurrent(run.project_id, run.period) from None

    def run(self, run_id: str) -> Run:
        """Returns one run. Raises `RunNotFound` if no run of this workspace has the id."""
        with self._read() as connection:
            return self._own_run(connection, run_id)

    def runs(
        self,
        *,
        project_id: str | None = None,
        period: str | None = None,
        statuses: tuple[RunStatus, ...] = (),
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Returns the runs that meet all conditions, newest first."""
        query = sa.select(RUNS).where(*self._conditions(project_id, period, statuses))
        query = query.order_by(RUNS.c.id_epoch_ms.desc()).limit(limit)
        with self._read() as connection:
            return tuple(run_from_row(row) for row in connection.execute(query))

    def count_runs(
        self,
        *,
        project_id: str | None = None,
        period: str | None = None,
        statuses: tuple[RunStatus, ...] = (),
    ) -> int:
        """Returns how many runs meet all conditions."""
        query = sa.select(sa.func.count()).where(*self._conditions(project_id, period, statuses))
        with self._read() as connection:
            return int(connection.execute(query).scalar_one())

    def _conditions(
        self, project_id: str | None, period: str | None, statuses: tuple[RunStatus, ...]
    ) -> Iterator[sa.ColumnElement[bool]]:
        yield RUNS.c.workspace_id == self.workspace_id
        if project_id is not None:
            yield RUNS.c.project_id == project_id
        if period is not None:
            yield RUNS.c.period == period
        if statuses:
            yield RUNS.c.status.in_(statuses)

    def snapshot(self, run_id: str) -> Snapshot:
        """Returns the snapshot of a run. Raises `RunNotRepeatable` if the run ended before it had one."""
        with self._read() as connection:
            self._own_run(connection, run_id)
            body = connection.execute(sa.select(SNAPSHOTS.c.body).where(SNAPSHOTS.c.run_id == run_id)).scalar()
        if body is None:
            message = f"run {run_id} failed before it had a snapshot"
            raise fail("RunNotRepeatable", message, hint="start a new run of the project")
        return Snapshot.model_validate_json(body)

    def run_events(self, run_id: str) -> tuple[RunEvent, ...]:
        """Returns what happened to a run, oldest first."""
        query = sa.select(*RUN_EVENTS.c["at", "attempt", "event", "detail"]).where(RUN_EVENTS.c.run_id == run_id)
        with self._read() as connection:
            rows = connection.execute(query.order_by(RUN_EVENTS.c.number)).mappings()
            return tuple(RunEvent.model_validate(dict(row)) for row in rows)

    def _own_run(self, connection: sa.Connection, run_id: str) -> Run:
        """Returns a run of this workspace. Raises `RunNotFound` for runs of other workspaces too."""
        run = get_run(connection, run_id)
        if run.workspace_id != self.workspace_id:
            raise run_not_found(run_id)
        return run

    def _owned_by(self, connection: sa.Connection, owner: Owner | None) -> dict[str, Any]:
        owner = owner or current_owner()
        return {
            "owner_host": owner.host,
            "owner_pid": owner.pid,
            "owner_started": owner.started,
            "heartbeat_at": self._clock(connection),
        }

    def refuse_concurrent(self, project_id: str, period: str) -> None:
        """Raises `ConcurrentRun` if a run of the project and period is active."""
        self.fail_dead_runs()
        others = self.runs(project_id=project_id, period=period, statuses=ACTIVE_RUN_STATUSES)
        if others:
            raise concurrent(others[0])

    def _concurrent(self, project_id: str, period: str) -> RunError:
        others = self.runs(project_id=project_id, period=period, statuses=ACTIVE_RUN_STATUSES)
        if others:
            return concurrent(others[0])
        return fail("ConcurrentRun", f"a run of project '{project_id}' for {period} ended just now", hint="try again")


def _check_retry(connection: sa.Connection, run: Run) -> None:
    if connection.execute(sa.select(SNAPSHOTS.c.run_id).where(SNAPSHOTS.c.run_id == run.id)).first() is None:
        message = f"run {run.id} cannot be retried: it failed before it had a snapshot"
        raise fail("RunNotRepeatable", message, hint="start a new run of the project")
    check_project_as_begun(connection, run)


def _next_epoch_ms(connection: sa.Connection) -> int:
    """Returns the present millisecond or, if a run has that one, the next free one. It is unique in the store."""
    present = int(now().timestamp() * 1000)
    following = sa.case((ID_CLOCK.c.last_ms >= present, ID_CLOCK.c.last_ms + 1), else_=present)
    epoch_ms: int = connection.execute(
        sa.update(ID_CLOCK).values(last_ms=following).returning(ID_CLOCK.c.last_ms)
    ).scalar_one()
    return epoch_ms


def _utc(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def _uuid7(epoch_ms: int) -> str:
    """Returns a version 7 UUID: 48 bits of time, version and variant, and random bits."""
    random_a, random_b = secrets.randbits(12), secrets.randbits(62)
    return str(UUID(int=epoch_ms << 80 | 0x7 << 76 | random_a << 64 | 0b10 << 62 | random_b))
