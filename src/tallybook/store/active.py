"""Active runs: which process owns them, whether it is alive, and which changes must wait for them.

On this host a process is identified by its pid and start time, so a later process with the same pid is not mistaken for
it. A process on another host is known by its heartbeat only.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import sqlalchemy as sa

from tallybook.errors import Problem, RunError, StoreError, fail
from tallybook.model.run import ACTIVE_RUN_STATUSES, Owner, Run, RunStatus
from tallybook.model.state import Json
from tallybook.project.lifecycle import RUN_MOVES, check_move
from tallybook.store.database import Database, now
from tallybook.store.tables import RUN_EVENTS, RUNS

_log = logging.getLogger(__name__)
HEARTBEAT_EVERY = timedelta(seconds=30)
DEAD_AFTER = timedelta(minutes=5)
"""The silence after which a process on another host counts as dead: ten missed beats."""

_STATE, _START_TICK = 0, 19
"""Fields of /proc/PID/stat, counted after the command name."""


class ActiveRuns(Database):
    """Queued and running runs. Heartbeats use the clock of the database, so the clocks of two hosts are never
    compared."""

    def heartbeat(self, run: Run) -> None:
        """Records that the process of the run is alive. Refused if the run was taken over or is finished."""
        with self._write() as connection:
            if not owned_run(connection, run).is_active:
                raise StoreError(f"run {run.id} is no longer running")
            beat = sa.update(RUNS).where(RUNS.c.id == run.id).values(heartbeat_at=self._clock(connection))
            connection.execute(beat)

    def abandon_run(self, run: Run, problem: Problem | None) -> bool:
        """Remembers how a run ended that the store could not record, for `fail_dead_runs` to record it later. Without a
        problem the run was cancelled. Returns False if the run has ended or belongs to another process."""
        try:
            with self._read() as connection:
                current = get_run(connection, run.id)
                if not current.is_active or current.attempt != run.attempt:
                    return False
        except StoreError:
            pass
        _ABANDONED[run.id, run.attempt] = problem
        return True

    def dead_runs(self) -> tuple[Run, ...]:
        """Returns the active runs whose process is gone or has abandoned them. Changes nothing."""
        with self._read() as connection:
            of_workspace = RUNS.c.workspace_id == self.workspace_id
            active = map(run_from_row, connection.execute(sa.select(RUNS).where(IS_ACTIVE, of_workspace)))
            clock = self._clock(connection)
            return tuple(
                run for run in active if _is_abandoned(run) or not is_alive(run.owner, run.heartbeat_at, clock)
            )

    def fail_dead_runs(self) -> tuple[Run, ...]:
        """Ends the active runs whose process is gone or has abandoned them, and returns them."""
        dead = self.dead_runs()
        if not dead:
            return ()
        with self._write() as connection:
            ended = tuple(_end(connection, run) for run in dead if _unchanged_since(connection, run))
        for run in dead:
            _ABANDONED.pop((run.id, run.attempt), None)
        return ended


_ABANDONED: dict[tuple[str, int], Problem | None] = {}
"""How runs of this process ended that the store could not record, by run and attempt."""


def _is_abandoned(run: Run) -> bool:
    return (run.id, run.attempt) in _ABANDONED


def _end(connection: sa.Connection, run: Run) -> Run:
    problem = _ABANDONED.get((run.id, run.attempt), _died(run))
    if problem is None:
        return move_run(connection, run, "cancelled", finished_at=now())
    return fail_run(connection, run, problem)


IS_ACTIVE = RUNS.c.status.in_(ACTIVE_RUN_STATUSES)


def refuse_while_active(
    connection: sa.Connection, workspace_id: str, what: str, *conditions: sa.ColumnElement[bool]
) -> None:
    """Raises `ConcurrentRun`, which names the run, if an active run meets the conditions."""
    query = sa.select(RUNS).where(RUNS.c.workspace_id == workspace_id, IS_ACTIVE, *conditions)
    row = connection.execute(query.limit(1)).first()
    if row is not None:
        run = run_from_row(row)
        raise fail(
            "ConcurrentRun",
            f"{what} while {_under_way(run)}",
            hint="wait until the run ends, or interrupt it; if its process has died, try again after five minutes",
            project=run.project_id,
        )


def concurrent(run: Run) -> RunError:
    """Returns the error for a second run while one is active."""
    return fail(
        "ConcurrentRun",
        _under_way(run),
        hint="wait until it ends; if its process has died, try again after five minutes",
        project=run.project_id,
    )


def _under_way(run: Run) -> str:
    since = (run.started_at or run.created_at).isoformat(timespec="seconds")
    return f"run {run.id} of project '{run.project_id}' for {run.period} is {run.status} since {since} ({run.owner})"


def owned_run(connection: sa.Connection, run: Run) -> Run:
    """Returns the run as it is recorded now. Raises StoreError if another attempt has taken it over."""
    current = get_run(connection, run.id)
    if current.attempt != run.attempt:
        raise StoreError(
            f"run {run.id} was taken over by attempt {current.attempt} ({current.owner}); this is attempt {run.attempt}"
        )
    return current


def move_run(connection: sa.Connection, run: Run, status: RunStatus, **values: Any) -> Run:
    """Changes the status of a run, if that change is allowed, and adds an event."""
    current = owned_run(connection, run)
    check_move(f"run {run.id}", RUN_MOVES, current.status, status)
    change = sa.update(RUNS).where(RUNS.c.id == run.id).values(status=status, **values).returning(RUNS)
    moved = run_from_row(connection.execute(change).one())
    add_event(connection, moved, status, moved.problem)
    return moved


def fail_run(connection: sa.Connection, run: Run, problem: Problem) -> Run:
    """Records a run as failed, with the reason."""
    return move_run(connection, run, "failed", finished_at=now(), problem=problem.to_json())


def add_event(connection: sa.Connection, run: Run, event: str, detail: Json | None = None) -> None:
    """Records something that happened to a run."""
    values = {"run_id": run.id, "at": now(), "attempt": run.attempt, "event": event, "detail": detail}
    connection.execute(sa.insert(RUN_EVENTS).values(values))


def get_run(connection: sa.Connection, run_id: str) -> Run:
    """Returns one run. Raises `RunNotFound` if no run has the id."""
    row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run_id)).first()
    if row is None:
        raise run_not_found(run_id)
    return run_from_row(row)


def run_not_found(run_id: str) -> RunError:
    return fail("RunNotFound", f"no run has the id {run_id}", hint="`tallybook runs` lists them")


def run_from_row(row: sa.Row[Any]) -> Run:
    values = dict(row._mapping)
    owner = Owner(host=values.pop("owner_host"), pid=values.pop("owner_pid"), started=values.pop("owner_started"))
    return Run(owner=owner, **values | {"parameters": values["parameters"] or {}})


def _died(run: Run) -> Problem:
    return Problem(
        "InternalError",
        f"the process of the run ({run.owner}) ended without finishing it",
        hint="outputs already written stay; `tallybook run --retry` continues it",
        project=run.project_id,
    )


def _unchanged_since(connection: sa.Connection, run: Run) -> bool:
    """True if nobody has changed the run since it was read."""
    current = get_run(connection, run.id)
    return current.is_active and (current.attempt, current.heartbeat_at) == (run.attempt, run.heartbeat_at)


@contextmanager
def beating(store: ActiveRuns, run: Run, every: timedelta = HEARTBEAT_EVERY) -> Iterator[None]:
    """Records heartbeats of the run until the block ends. A failed heartbeat is only logged: the store may be
    unreachable for a moment."""
    done = Event()

    def beat() -> None:
        while not done.wait(every.total_seconds()):
            try:
                store.heartbeat(run)
            except StoreError as error:
                _log.warning("no heartbeat for run %s: %s", run.id, error.message)

    thread = Thread(target=beat, name=f"heartbeat-{run.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def current_owner() -> Owner:
    """Returns the owner for this process."""
    pid = os.getpid()
    stat = _stat(pid)
    started = f"{_machine()}/{stat[_START_TICK]}" if stat else ""
    return Owner(host=socket.gethostname(), pid=pid, started=started)


def is_alive(owner: Owner, heartbeat_at: datetime, now: datetime) -> bool:
    """True if the process may still be working on its run."""
    machine, _, tick = owner.started.rpartition("/")
    if owner.host != socket.gethostname() or machine != _machine():
        return now - heartbeat_at < DEAD_AFTER
    if not _pid_exists(owner.pid):
        return False
    stat = _stat(owner.pid)
    return stat is None or (stat[_STATE] not in "ZX" and stat[_START_TICK] == tick)


def _machine() -> str:
    """Returns the boot id and the pid namespace, because containers can share a host name and not know each other's
    pids. Empty if the system has no such ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of /proc/PID/stat; None if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _pid_exists(pid: int) -> bool:
    """True if a process has the pid. Signal 0 only checks; PermissionError means that there is a process."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
