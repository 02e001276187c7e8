"""The standby process: commands that run in a fork of a process that has imported everything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tallybook.engine.locks import lock
from tallybook.engine.standby import address, standby_folder
from tallybook.engine.standby_server import start_standby
from tallybook.engine.warm import Running, WarmSession

ORDERS = Path(__file__).parent.parent.parent / "examples" / "orders"


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "it took too long"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cache() -> Iterator[Path]:
    """A cache folder with a short path, because the path of a socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="tb"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        yield folder / "tallybook"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def standby(cache: Path) -> Iterator[Path]:
    """The folder of a standby process. The warm session that it belongs to takes no commands."""
    session = WarmSession(cache / "session-of-the-test")
    session.folder.mkdir(parents=True, mode=0o700)
    cache.chmod(0o700)
    alive = lock(session.server_lock)
    assert alive is not None
    session.publish(Running(os.getpid(), 1, "token", "2026-01-01T00:00:00+00:00", 1, "local", "17", "4"))
    start_standby()
    folder = standby_folder()
    assert folder is not None
    until(lambda: address(folder).exists())
    yield folder
    alive.close()
    until(lambda: lock(folder / "lock"))
    assert not address(folder).exists()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    copy = tmp_path / "orders"
    shutil.copytree(ORDERS, copy, ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    return copy


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "tallybook", *words], cwd=folder, text=True, **pipes)


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    process = start(folder, *words)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def forks(folder: Path) -> list[str]:
    """Returns the processes of the commands that a standby process runs now."""
    pid = (folder / "lock").read_text()
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_command_does_the_same_in_it(standby: Path, workspace: Path) -> None:
    commands = (
        ("plan", "order-clos", "--period", "2026-01"),
        ("plan", "--workspace", "../orders", "order-close", "--period", "2026-01", "--json"),
    )
    here = address(standby)
    in_standby = [run(workspace, *words) for words in commands]
    elsewhere = here.rename(standby / "elsewhere")
    assert [run(workspace, *words) for words in commands] == in_standby
    elsewhere.rename(here)
    assert [code for code, *_ in in_standby] == [1, 0]


def test_it_has_the_environment_of_the_command(standby: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBOOK_LOG_FORMAT", "json")
    code, out, err = run(workspace, "plan", "order-clos", "--period", "2026-01")
    assert (code, out) == (1, "")
    assert "did you mean 'order-close'" in json.loads(err)["hint"]


def test_other_code_or_another_language_has_no_standby(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = standby_folder()
    assert folder == standby_folder()
    monkeypatch.setenv("LC_ALL", "C.UTF-8" if os.environ.get("LC_ALL") != "C.UTF-8" else "C")
    assert standby_folder() != folder


def has_open(process: str, folder: Path) -> bool:
    """True if a process has opened a file of a folder: then it has long installed its handlers of signals."""
    with suppress(OSError):
        return any(file.readlink().is_relative_to(folder) for file in Path(f"/proc/{process}/fd").iterdir())
    return False


@pytest.fixture
def waiting(standby: Path, workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in the standby process that waits for the store, which the test has locked."""
    assert run(workspace, "apply")[0] == 0
    with sqlite3.connect(workspace / ".tallybook" / "store.sqlite3") as holder:
        holder.execute("BEGIN EXCLUSIVE")
        client = start(workspace, "run", "order-close", "--period", "2026-01")
        until(lambda: any(has_open(fork, workspace) for fork in forks(standby)))
        yield client
        until(lambda: not forks(standby))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_ends_the_command(waiting: subprocess.Popen[str], number: signal.Signals, code: int) -> None:
    waiting.send_signal(number)
    waiting.communicate(timeout=60)
    assert waiting.returncode == code


def test_a_fork_that_is_killed_is_reported(waiting: subprocess.Popen[str], standby: Path) -> None:
    [fork] = forks(standby)
    os.kill(int(fork), signal.SIGKILL)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 5
    assert "the process of the command was killed" in err
