"""Warm sessions: real servers, in a cache folder of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents.kit import read_document

from tallybook.engine.locks import lock
from tallybook.engine.warm import Running, WarmSession, all_warm, find_warm, start_warm, stop_warm
from tallybook.errors import SessionError
from tallybook.model.settings import SparkSettings

ORDERS = Path(__file__).parent.parent.parent / "examples" / "orders"
SMALL = SparkSettings(
    master="local[2]",
    conf={"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"},
    class_archive="use",
)
OTHER = SMALL.model_copy(update={"master": "local[1]"})
MINUTES = 10
CLIENT = """\
import sys
from tallybook.engine.interrupt import interruptible
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings
spark = get_session(SparkSettings.model_validate_json(sys.argv[1]), warm=True)
print(type(spark).__module__, spark.conf.get("spark.driver.memory"), flush=True)
with interruptible(spark):
    print(spark.range(int(sys.argv[2])).selectExpr("sum(hash(id))").count(), flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder in which no session runs before or after the test. The archive of classes is the user's."""
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tallybook"
    folder = tmp_path / "cache" / "tallybook"
    folder.mkdir(parents=True, mode=0o700)
    for archive in usual.glob("java-*"):
        (folder / archive.name).symlink_to(archive)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
    yield folder
    for session, _, _ in all_warm(SMALL):
        stop_warm(session, now=True)


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "it took too long"
        time.sleep(0.1)


def client(rows: int = 10) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, SMALL.model_dump_json(), str(rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def java_of(running: Running) -> int:
    """Returns the process of the JVM."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    [java] = [int(child) for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "java"]
    return java


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "tallybook", *words, "--workspace", str(workspace)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False)


def document(workspace: Path, *words: str) -> Any:
    done = command(workspace, *words, "--json")
    assert done.returncode == 0, done.stderr
    return read_document(words, 0, done.stdout)


@pytest.mark.long
def test_commands_use_it_until_it_is_stopped(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "orders"
    shutil.copytree(ORDERS, workspace, ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    monkeypatch.setenv("TALLYBOOK_SPARK_CONF", "spark.driver.memory=1g")
    assert document(workspace, "session", "status") == {"sessions": []}
    started = document(workspace, "session", "start", "--idle", "5")
    assert (started["idle_minutes"], started["in_use"], started["fits"]) == (5, False, True)
    assert document(workspace, "session", "start")["pid"] == started["pid"]
    for words in (
        ("run", "order-close", "--period", "2026-01"),
        ("test", str(workspace / "scenarios" / "totals.yaml")),
    ):
        done = command(workspace, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.startswith(f"Using the warm session (pid {started['pid']}, since ")
        assert len(done.stderr.splitlines()) == 1
    [session] = cache.glob("session-*")
    assert {file.stat().st_mode & 0o077 for file in (session, *session.iterdir())} == {0}
    assert not (workspace / ".tallybook" / "logs").exists()

    monkeypatch.setenv("TALLYBOOK_SPARK_CONF", "spark.driver.memory=2g")
    [other] = document(workspace, "session", "status")["sessions"]
    assert (other["pid"], other["fits"]) == (started["pid"], False)
    assert document(workspace, "session", "stop") == {"stopped": []}
    assert document(workspace, "session", "stop", "--all") == {"stopped": [started["pid"]]}
    assert document(workspace, "session", "status") == {"sessions": []}
    assert not lives(started["pid"])


@pytest.mark.long
def test_a_session_in_use_is_stopped_only_on_demand(cache: Path) -> None:
    session, running = start_warm(SMALL, MINUTES)
    java = java_of(running)
    use = lock(session.use_lock, shared=True, seconds=5)
    assert use is not None
    assert session.is_in_use()
    with pytest.raises(SessionError, match=rf"the warm session \(pid {running.pid}\) is in use"):
        stop_warm(session)
    assert session.running() == running
    stop_warm(session, now=True)
    use.close()
    assert session.running() is None
    until(lambda: not lives(running.pid) and not lives(java))


def test_a_killed_server_leaves_nothing_behind(cache: Path) -> None:
    session, running = start_warm(SMALL, MINUTES)
    java = java_of(running)
    os.kill(running.pid, signal.SIGKILL)
    until(lambda: not lives(java))
    assert session.running() is None
    assert not session.description.exists()


@pytest.mark.long
def test_it_ends_when_nobody_uses_it(cache: Path) -> None:
    session, running = start_warm(SMALL, 0.05)  # type: ignore[arg-type]  # minutes may be a part of one
    use = lock(session.use_lock, shared=True, seconds=5)
    assert use is not None
    time.sleep(5)
    assert session.running() == running
    use.close()
    until(lambda: not lives(running.pid))
    assert session.running() is None


def test_two_that_start_at_once_are_one(cache: Path) -> None:
    started: list[Running] = []
    threads = [threading.Thread(target=lambda: started.append(start_warm(SMALL, MINUTES)[1])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 3
    assert len(set(started)) == 1


def test_a_server_that_cannot_start_says_why(cache: Path) -> None:
    with pytest.raises(SessionError) as caught:
        start_warm(SMALL.model_copy(update={"master": "local[x]"}), MINUTES)
    assert caught.value.message == "Spark did not start: Could not parse Master URL: 'local[x]'"
    assert str(caught.value.hint).startswith("its log is ")


def test_other_settings_have_another_session(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_warm(SMALL) == find_warm(SMALL)
    assert find_warm(SMALL) != find_warm(OTHER)
    assert find_warm(SMALL.model_copy(update={"remote": "sc://elsewhere"})) is None
    before = find_warm(SMALL)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.shuffle.partitions=3 pyspark-shell")
    assert find_warm(SMALL) != before


def test_no_workspace_with_a_server_elsewhere_keeps_a_session(cache: Path) -> None:
    with pytest.raises(SessionError, match="no warm session can be kept here"):
        start_warm(SMALL.model_copy(update={"remote": "sc://elsewhere"}), MINUTES)


def test_a_description_without_a_server_is_removed(cache: Path) -> None:
    session = find_warm(SMALL)
    assert session is not None
    session.folder.mkdir(mode=0o700)
    session.publish(Running(1, 2, "token", "2026-01-01T00:00:00+00:00", 30, "local[1]", "17", "4"))
    assert session.running() is None
    assert not session.description.exists()
    assert WarmSession(session.folder).running() is None


@pytest.mark.long
def test_ctrl_c_ends_the_command_and_not_the_session(cache: Path) -> None:
    session, running = start_warm(SMALL, MINUTES)
    long = client(100_000_000_000)
    assert long.stdout is not None
    assert long.stdout.readline() == "pyspark.sql.connect.session 1g\n"
    time.sleep(2)
    long.send_signal(signal.SIGINT)
    _, said = long.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert session.running() == running
    done = client()
    assert done.communicate(timeout=60)[0] == "pyspark.sql.connect.session 1g\n1\n"
    until(lambda: not session.is_in_use())


@pytest.mark.long
def test_a_session_that_does_not_answer_is_left_alone(cache: Path) -> None:
    _, running = start_warm(SMALL, MINUTES)
    java = java_of(running)
    os.kill(java, signal.SIGSTOP)
    try:
        said, _ = client().communicate(timeout=200)
    finally:
        os.kill(java, signal.SIGCONT)
    assert said == "pyspark.sql.session 1g\n1\n"
