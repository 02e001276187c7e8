"""A run whose process is stopped for longer than a heartbeat allows, and then goes on: it publishes nothing more."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.kit.workspaces import JANUARY, AtStep, Books
from tests.runs.forks import SECONDS, Forks, Job

from tallybook.errors import RunError
from tallybook.model.run import Run
from tallybook.store.active import DEAD_AFTER
from tallybook.store.database import now
from tallybook.store.tables import RUNS

STOPPED = "SIGSTOP for longer than the heartbeat allows, then SIGCONT"


@contextmanager
def stopped(books: Books, forks: Forks, moment: str, host: str = "elsewhere") -> Iterator[tuple[Run, list[str]]]:
    """A run of another process, which stands still at a moment while the block lasts and seems to be on the host,
    silent for too long. The list holds what the run came to, after the block."""
    outcome: list[str] = []
    job = Job(str(books.root), "2026-01", stops=moment)
    thread = threading.Thread(target=lambda: outcome.extend(forks.run(job)))
    thread.start()
    run = _run_under_way(books)
    try:
        _wait_until_stopped(run.owner.pid)
        with books.store() as store, store._write() as connection:
            silent = now() - DEAD_AFTER - timedelta(seconds=1)
            connection.execute(sa.update(RUNS).values(owner_host=host, heartbeat_at=silent))
        yield run, outcome
    finally:
        with suppress(ProcessLookupError):
            os.kill(run.owner.pid, signal.SIGCONT)
        thread.join(SECONDS)


def _run_under_way(books: Books) -> Run:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with books.store() as store:
            active = store.runs(statuses=("running",))
        if active:
            return active[0]
        time.sleep(0.05)
    raise AssertionError("no run has begun")


def _wait_until_stopped(pid: int) -> None:
    deadline = time.monotonic() + SECONDS
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "the run did not stop"
        time.sleep(0.05)


@pytest.mark.fault(STOPPED, "RunSuperseded; the rows of its successor, not doubled")
@pytest.mark.parametrize("moment", ["writing", pytest.param("committing", marks=pytest.mark.long)])
def test_rows_are_not_doubled(appending: Books, forks: Forks, moment: str) -> None:
    """`writing` is before the run asks the store, `committing` after it got its permission."""
    with stopped(appending, forks, moment) as (run, outcome):
        successor = appending.run().run
        assert (successor.status, appending.ledger()) == ("completed", JANUARY)
    assert "RunSuperseded" in outcome[0]
    assert appending.ledger() == JANUARY
    with appending.store() as store:
        declared_dead = store.run(run.id)
    assert declared_dead.status == "failed" and successor.claim > run.claim
    with pytest.raises(RunError, match=f"run {successor.id} of the same project and period has completed since"):
        appending.open().retry(run.id)


@pytest.mark.fault(STOPPED, "AlreadyAppended for its successor; rows not doubled")
def test_a_run_does_not_append_beside_a_dead_one_that_wrote_after_all(appending: Books, forks: Forks) -> None:
    """The first run has its permission and stands still; it commits while its successor computes."""
    with stopped(appending, forks, "committing") as (run, outcome):

        def wake() -> None:
            os.kill(run.owner.pid, signal.SIGCONT)
            deadline = time.monotonic() + SECONDS
            while not outcome and time.monotonic() < deadline:
                time.sleep(0.05)

        with pytest.raises(RunError, match=f"run {run.id}, which was declared dead, has appended") as refused:
            appending.run(observers=[AtStep(30, wake)])
    assert refused.value.problem.type == "AlreadyAppended"
    assert appending.ledger() == JANUARY
    with pytest.raises(RunError, match=rf"run {run.id} \(failed\) has appended rows"):
        appending.run()


@pytest.mark.fault(STOPPED, "RunSuperseded; nothing written into the locked period")
def test_a_run_does_not_write_into_a_locked_period(appending: Books, forks: Forks) -> None:
    with stopped(appending, forks, "writing") as (_run, outcome), appending.store() as store:
        for status in ("closed", "locked"):
            store.set_period_status("gregorian", "2026-01", status)
        store.deactivate("close")
    assert "RunSuperseded" in outcome[0]
    assert not (appending.root / "warehouse" / "ledger" / "_delta_log").exists()
    assert not (appending.root / "reports").exists()


@pytest.mark.long
@pytest.mark.fault(STOPPED, "on the host of its successor it counts as alive: ConcurrentRun, then it completed")
def test_a_stopped_run_of_this_host_is_waited_for(appending: Books, forks: Forks) -> None:
    with stopped(appending, forks, "committing", socket.gethostname()) as (run, outcome):
        with pytest.raises(RunError, match=run.id) as refused:
            appending.run()
        assert refused.value.problem.type == "ConcurrentRun"
    assert outcome == ["completed"]
    assert appending.ledger() == JANUARY
