"""Runs: created, started, finished, retried; and recognised as failed when their process is gone."""

from __future__ import annotations

import secrets
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tallybook.errors import Problem, RunError, StoreError, fail
from tallybook.model.period import PeriodStatus
from tallybook.model.run import ACTIVE_RUN_STATUSES, Owner, Run, RunEvent, RunStatus, Snapshot
from tallybook.model.state import Json
from tallybook.project.lifecycle import RUN_MOVES, check_move, check_period_runs, check_project_runs
from tallybook.store.database import Database, canonical_json, now
from tallybook.store.owner import current_owner, is_alive
from tallybook.store.periods import period_status
from tallybook.store.projects import check_version, known_project
from tallybook.store.tables import ID_CLOCK, RUN_EVENTS, RUNS, SNAPSHOTS


class Runs(Database):
    """A run is reported about with the `Run` its process was given: a process whose run was meanwhile declared dead
    and taken over by a retry is refused."""

    def create_run(
        self,
        project_id: str,
        project_version: int,
        period: str,
        *,
        calendar_id: str,
        as_of: date,
        run_timestamp: datetime | None = None,
        sandbox: bool = False,
        reopen_reason: str | None = None,
        initial_period_status: PeriodStatus = "open",
        owner: Owner | None = None,
    ) -> Run:
        """A queued run, if project and period may run and no other run of both is under way. A draft always gets
        the sandbox. `run_timestamp` is the moment of creation unless given."""
        self.fail_dead_runs()
        try:
            with self._write() as connection:
                state = known_project(connection, project_id)
                check_version(state, project_version)
                check_project_runs(project_id, state.status, state.conflicts)
                status = period_status(connection, calendar_id, period, initial_period_status)
                check_period_runs(period, status, reopen_reason)
                epoch_ms = _next_epoch_ms(connection)
                moment = now()
                values = _owned_by(owner or current_owner(), moment) | {
                    "id": _uuid7(epoch_ms),
                    "project_id": project_id,
                    "project_version": project_version,
                    "calendar_id": calendar_id,
                    "period": period,
                    "status": "queued",
                    "attempt": 1,
                    "id_epoch_ms": epoch_ms,
                    "run_timestamp": run_timestamp or _moment(epoch_ms),
                    "as_of": as_of,
                    "sandbox": sandbox or state.status == "draft",
                    "reopen_reason": reopen_reason if status == "closed" else None,
                    "created_at": moment,
                }
                run = _run(connection.execute(sa.insert(RUNS).values(values).returning(RUNS)).one())
                add_event(connection, run, "queued")
                return run
        except IntegrityError:
            raise self._concurrent(project_id, period) from None

    def start_run(self, run: Run, snapshot: Snapshot) -> Run:
        """Queued → running, with the snapshot that is from now on what the run is."""
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
        """Running → completed."""
        with self._write() as connection:
            return move_run(connection, run, "completed", finished_at=now())

    def fail_run(self, run: Run, problem: Problem) -> Run:
        """Queued or running → failed, with the reason."""
        with self._write() as connection:
            return _fail(connection, run, problem)

    def cancel_run(self, run: Run) -> Run:
        """Queued or running → cancelled."""
        with self._write() as connection:
            return move_run(connection, run, "cancelled", finished_at=now())

    def warn_run(self, run: Run, message: str) -> None:
        """Notes something the user should know that does not fail the run."""
        with self._write() as connection:
            owned_run(connection, run)
            add_event(connection, run, "warning", {"message": message})

    def retry_run(
        self,
        run_id: str,
        *,
        reopen_reason: str | None = None,
        initial_period_status: PeriodStatus = "open",
        owner: Owner | None = None,
    ) -> Run:
        """A failed or cancelled run, running again in this process: same id, same snapshot, next attempt."""
        self.fail_dead_runs()
        run = self.run(run_id)
        try:
            with self._write() as connection:
                _check_retry(connection, run)
                status = period_status(connection, run.calendar_id, run.period, initial_period_status)
                reason = reopen_reason or run.reopen_reason
                check_period_runs(run.period, status, reason)
                return move_run(
                    connection,
                    run,
                    "running",
                    attempt=run.attempt + 1,
                    problem=None,
                    finished_at=None,
                    reopen_reason=reason,
                    **_owned_by(owner or current_owner(), now()),
                )
        except IntegrityError:
            raise self._concurrent(run.project_id, run.period) from None

    def heartbeat(self, run: Run) -> None:
        """Says that the run's process is alive; refused when the run was taken over or is finished."""
        with self._write() as connection:
            if not owned_run(connection, run).is_active:
                raise StoreError(f"run {run.id} is no longer running")
            connection.execute(sa.update(RUNS).where(RUNS.c.id == run.id).values(heartbeat_at=now()))

    def fail_dead_runs(self) -> tuple[Run, ...]:
        """Marks the active runs whose process is gone as failed, and returns them."""
        active = self.runs(statuses=ACTIVE_RUN_STATUSES)
        dead = [run for run in active if not is_alive(run.owner, run.heartbeat_at, now())]
        if not dead:
            return ()
        with self._write() as connection:
            return tuple(_fail(connection, run, _died(run)) for run in dead if _unchanged_since(connection, run))

    def run(self, run_id: str) -> Run:
        """One run; `RunNotFound` when there is none."""
        with self._read() as connection:
            return _get(connection, run_id)

    def runs(
        self,
        *,
        project_id: str | None = None,
        period: str | None = None,
        statuses: tuple[RunStatus, ...] = (),
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Runs that fit, newest first."""
        query = sa.select(RUNS).order_by(RUNS.c.id_epoch_ms.desc()).limit(limit)
        if project_id is not None:
            query = query.where(RUNS.c.project_id == project_id)
        if period is not None:
            query = query.where(RUNS.c.period == period)
        if statuses:
            query = query.where(RUNS.c.status.in_(statuses))
        with self._read() as connection:
            return tuple(_run(row) for row in connection.execute(query))

    def snapshot(self, run_id: str) -> Snapshot:
        """What a run executes; `RunNotFound` when it never came so far."""
        with self._read() as connection:
            _get(connection, run_id)
            body = connection.execute(sa.select(SNAPSHOTS.c.body).where(SNAPSHOTS.c.run_id == run_id)).scalar()
        if body is None:
            message = f"run {run_id} failed before it had a snapshot"
            raise fail("RunNotFound", message, hint="start a new run of the project")
        return Snapshot.model_validate_json(body)

    def run_events(self, run_id: str) -> tuple[RunEvent, ...]:
        """What happened to a run, oldest first."""
        query = sa.select(*RUN_EVENTS.c["at", "attempt", "event", "detail"]).where(RUN_EVENTS.c.run_id == run_id)
        with self._read() as connection:
            rows = connection.execute(query.order_by(RUN_EVENTS.c.number)).mappings()
            return tuple(RunEvent.model_validate(dict(row)) for row in rows)

    def _concurrent(self, project_id: str, period: str) -> RunError:
        others = self.runs(project_id=project_id, period=period, statuses=ACTIVE_RUN_STATUSES)
        if not others:
            return fail(
                "ConcurrentRun", f"a run of project '{project_id}' for {period} ended just now", hint="try again"
            )
        other = others[0]
        since = (other.started_at or other.created_at).isoformat(timespec="seconds")
        return fail(
            "ConcurrentRun",
            f"run {other.id} of project '{project_id}' for {period} is {other.status} since {since} ({other.owner})",
            hint="wait until it ends; a run whose process died is recognised by itself",
            project=project_id,
        )


def owned_run(connection: sa.Connection, run: Run) -> Run:
    """The run as it is now, if it is still the caller's to report about."""
    current = _get(connection, run.id)
    if current.attempt != run.attempt:
        raise StoreError(
            f"run {run.id} was taken over by attempt {current.attempt} ({current.owner}); this is attempt {run.attempt}"
        )
    return current


def move_run(connection: sa.Connection, run: Run, status: RunStatus, **values: Any) -> Run:
    """Changes the status by the rules, and notes it as an event."""
    current = owned_run(connection, run)
    check_move(f"run {run.id}", RUN_MOVES, current.status, status)
    change = sa.update(RUNS).where(RUNS.c.id == run.id).values(status=status, **values).returning(RUNS)
    moved = _run(connection.execute(change).one())
    add_event(connection, moved, status, moved.problem)
    return moved


def add_event(connection: sa.Connection, run: Run, event: str, detail: Json | None = None) -> None:
    values = {"run_id": run.id, "at": now(), "attempt": run.attempt, "event": event, "detail": detail}
    connection.execute(sa.insert(RUN_EVENTS).values(values))


def _fail(connection: sa.Connection, run: Run, problem: Problem) -> Run:
    return move_run(connection, run, "failed", finished_at=now(), problem=problem.to_json())


def _died(run: Run) -> Problem:
    return Problem(
        "InternalError",
        f"the process of the run ({run.owner}) ended without finishing it",
        hint="outputs already written stay; `tallybook run --retry` continues it",
        project=run.project_id,
    )


def _unchanged_since(connection: sa.Connection, run: Run) -> bool:
    """Whether nobody moved the run on after it was looked at."""
    current = _get(connection, run.id)
    return current.is_active and (current.attempt, current.heartbeat_at) == (run.attempt, run.heartbeat_at)


def _check_retry(connection: sa.Connection, run: Run) -> None:
    if connection.execute(sa.select(SNAPSHOTS.c.run_id).where(SNAPSHOTS.c.run_id == run.id)).first() is None:
        raise fail(
            "RunNotFound", f"run {run.id} has no snapshot to continue from", hint="start a new run of the project"
        )
    state = known_project(connection, run.project_id)
    check_project_runs(run.project_id, state.status, state.conflicts)


def _owned_by(owner: Owner, moment: datetime) -> dict[str, Any]:
    return {
        "owner_host": owner.host,
        "owner_pid": owner.pid,
        "owner_started": owner.started,
        "heartbeat_at": moment,
    }


def _get(connection: sa.Connection, run_id: str) -> Run:
    row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run_id)).first()
    if row is None:
        raise fail("RunNotFound", f"no run has the id {run_id}", hint="`tallybook runs` lists them")
    return _run(row)


def _run(row: sa.Row[Any]) -> Run:
    values = dict(row._mapping)
    owner = Owner(host=values.pop("owner_host"), pid=values.pop("owner_pid"), started=values.pop("owner_started"))
    return Run(owner=owner, **values)


def _next_epoch_ms(connection: sa.Connection) -> int:
    """The present millisecond, or the next one no run has: the counter row makes it unique in the store."""
    present = int(now().timestamp() * 1000)
    following = sa.case((ID_CLOCK.c.last_ms >= present, ID_CLOCK.c.last_ms + 1), else_=present)
    epoch_ms: int = connection.execute(
        sa.update(ID_CLOCK).values(last_ms=following).returning(ID_CLOCK.c.last_ms)
    ).scalar_one()
    return epoch_ms


def _moment(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def _uuid7(epoch_ms: int) -> str:
    """A version 7 UUID: 48 bits of time, the rest random beside the version and variant marks."""
    random_a, random_b = secrets.randbits(12), secrets.randbits(62)
    return str(UUID(int=epoch_ms << 80 | 0x7 << 76 | random_a << 64 | 0b10 << 62 | random_b))
