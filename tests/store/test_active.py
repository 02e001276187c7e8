"""Many processes at one store, and processes that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from tests.store.kit import record

from tallybook.errors import StoreError
from tallybook.model.run import Owner, Run, Snapshot
from tallybook.store.active import DEAD_AFTER, beating, current_owner, is_alive
from tallybook.store.store import REVISIONS, Store

NewRun = Callable[..., Run]
AT_ONCE = 10
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tallybook.store.store", "psycopg"])


def together(work: Callable[..., object], url: URL, arguments: list[Any]) -> list[Any]:
    """Runs the work in one process per argument, all let go at the same moment and alive until the last has
    answered; their answers in order."""
    barrier, answered = _CONTEXT.Barrier(len(arguments)), _CONTEXT.Event()
    text = url.render_as_string(hide_password=False)
    pipes = [_CONTEXT.Pipe(duplex=False) for _ in arguments]
    processes = [
        _CONTEXT.Process(target=_worker, args=(work, text, argument, barrier, sender, answered))
        for argument, (_, sender) in zip(arguments, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    answers = [receiver.recv() if receiver.poll(60) else "no answer" for receiver, _ in pipes]
    answered.set()
    for process in processes:
        process.join()
    return answers


def _worker(work: Callable[..., object], url: str, argument: Any, barrier: Any, sender: Any, answered: Any) -> None:
    barrier.wait()
    try:
        sender.send(work(make_url(url), argument))
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}")
    answered.wait(60)


def _create(url: URL, period: str) -> tuple[str, int]:
    with Store.open(url) as store:
        run = store.create_run("close", 1, period, calendar_id="gregorian", as_of=date(2026, 1, 1))
        return run.id, run.id_epoch_ms


def _record(url: URL, body: dict[str, Any]) -> tuple[int, bool]:
    with Store.open(url) as store:
        recorded = record(store, "dataset", "orders", body)
        return recorded.version, recorded.new


def _open(url: URL, _argument: object) -> str | None:
    with Store.open(url) as store:
        return store.revision()


def test_of_ten_runs_of_project_and_period_one_wins(store: Store, new_run: NewRun) -> None:
    answers = together(_create, store.url, ["2026-01"] * AT_ONCE)
    winners = [answer for answer in answers if isinstance(answer, tuple)]
    losers = [answer for answer in answers if isinstance(answer, str)]
    assert len(winners) == 1, answers
    assert all("ConcurrentRun" in loser and winners[0][0] in loser for loser in losers), losers


def test_ten_runs_of_ten_periods_all_start(store: Store, new_run: NewRun) -> None:
    answers = together(_create, store.url, [f"2026-{month:02}" for month in range(1, AT_ONCE + 1)])
    assert all(isinstance(answer, tuple) for answer in answers), answers
    assert len({epoch for _, epoch in answers}) == AT_ONCE
    assert len(store.runs()) == AT_ONCE


def test_ten_records_of_one_change_make_one_version(store: Store, dataset_body: Callable[..., Any]) -> None:
    record(store, "dataset", "orders", dataset_body("tier"))
    answers = together(_record, store.url, [dataset_body("level")] * AT_ONCE)
    assert sorted(answers) == [(2, False)] * (AT_ONCE - 1) + [(2, True)]


def test_ten_records_of_ten_changes_make_ten_versions(store: Store, dataset_body: Callable[..., Any]) -> None:
    answers = together(_record, store.url, [dataset_body(f"c{number}") for number in range(AT_ONCE)])
    assert sorted(answers) == [(version, True) for version in range(1, AT_ONCE + 1)]


def test_ten_processes_make_one_sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = URL.create("sqlite", database=str(tmp_path_factory.mktemp("new") / "deep" / "store.sqlite3"))
    assert together(_open, url, list(range(AT_ONCE))) == [REVISIONS[-1]] * AT_ONCE


def test_ten_processes_upgrade_one_postgresql_store(new_database: Callable[[], URL]) -> None:
    assert together(_upgrade, new_database(), list(range(AT_ONCE))) == [REVISIONS[-1]] * AT_ONCE


def _upgrade(url: URL, _argument: object) -> str | None:
    with Store(url) as store:
        store.upgrade()
        return store.revision()


_RUNNING = """
import sys, time
from datetime import date
from sqlalchemy.engine import make_url
from tallybook.model.run import Snapshot
from tallybook.store.store import Store

store = Store.open(make_url(sys.argv[1]))
run = store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1))
if sys.argv[2:]:
    run = store.start_run(run, Snapshot.model_validate_json(sys.argv[2]))
print(run.id, flush=True)
time.sleep(600)
"""


@contextmanager
def running_elsewhere(store: Store, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process with a run of the project, and the run's id."""
    command = [sys.executable, "-c", _RUNNING, store.url.render_as_string(hide_password=False), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_killed_run_is_failed_at_the_next_opening(
    store: Store, new_run: NewRun, snapshot: Snapshot, status: str
) -> None:
    arguments = [snapshot.model_dump_json()] if status == "running" else []
    with running_elsewhere(store, *arguments) as (process, run_id):
        Store.open(store.url).close()
        assert store.run(run_id).status == status
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        Store.open(store.url).close()
        unreaped = store.run(run_id)
    assert (unreaped.status, unreaped.problem and unreaped.problem["type"]) == ("failed", "InternalError")
    assert unreaped.problem is not None and f"pid {process.pid}" in unreaped.problem["message"]
    assert new_run().id != run_id


def test_a_killed_run_makes_way_for_one_in_a_process_already_open(store: Store, new_run: NewRun) -> None:
    with running_elsewhere(store) as (process, run_id):
        process.kill()
        process.wait()
    new_run()
    assert store.run(run_id).status == "failed"


def owner_in_doubt(**facts: Any) -> Owner:
    return current_owner().model_copy(update=facts)


def test_a_later_process_with_the_same_pid_is_not_the_owner() -> None:
    now = datetime.now(UTC)
    mine = current_owner()
    assert is_alive(mine, now - timedelta(days=1), now)
    machine, _, tick = mine.started.rpartition("/")
    assert not is_alive(owner_in_doubt(started=f"{machine}/{int(tick) - 1}"), now, now)
    assert not is_alive(owner_in_doubt(pid=2**22 + 1), now, now)


@pytest.mark.parametrize("facts", [{"host": "elsewhere"}, {"started": "other-boot/pid:[1]/5"}])
def test_of_another_machine_or_container_only_the_heartbeat_counts(facts: dict[str, str]) -> None:
    now = datetime.now(UTC)
    owner = owner_in_doubt(pid=2**22 + 1, **facts)
    assert is_alive(owner, now - DEAD_AFTER + timedelta(seconds=1), now)
    assert not is_alive(owner, now - DEAD_AFTER, now)


def test_a_silent_run_of_another_host_is_failed(store: Store, new_run: NewRun) -> None:
    run = new_run(owner=owner_in_doubt(host="elsewhere"))
    assert store.fail_dead_runs() == ()
    silent_since = datetime.now(UTC) - DEAD_AFTER
    with store._write() as connection:
        connection.execute(sa.text("UPDATE runs SET heartbeat_at = :at"), {"at": silent_since.isoformat(" ")})
    assert [dead.id for dead in store.fail_dead_runs()] == [run.id]
    with pytest.raises(StoreError, match="is failed and cannot become completed"):
        store.complete_run(run)


def test_the_heart_beats_while_the_block_lasts(store: Store, new_run: NewRun) -> None:
    run = new_run()
    with beating(store, run, every=timedelta(milliseconds=20)):
        deadline = time.monotonic() + 10
        while store.run(run.id).heartbeat_at == run.heartbeat_at and time.monotonic() < deadline:
            time.sleep(0.02)
    beaten = store.run(run.id).heartbeat_at
    assert beaten > run.heartbeat_at
    time.sleep(0.1)
    assert store.run(run.id).heartbeat_at == beaten


def test_a_beat_that_fails_does_not_stop_the_work(
    store: Store, new_run: NewRun, caplog: pytest.LogCaptureFixture
) -> None:
    run = store.cancel_run(new_run())
    with beating(store, run, every=timedelta(milliseconds=5)):
        deadline = time.monotonic() + 10
        while len(caplog.records) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(caplog.records) >= 2 and "no longer running" in caplog.text
