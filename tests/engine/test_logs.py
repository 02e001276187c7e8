"""Logs of Spark are readable by their owner only, and old ones are removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tallybook.engine.logs import new_log


@pytest.fixture(autouse=True)
def _usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_them(tmp_path: Path) -> None:
    log = new_log(tmp_path / "kept" / "logs")
    assert (mode(log), mode(log.parent), mode(log.parent.parent)) == (0o600, 0o700, 0o700)
    log = new_log()
    assert (mode(log), mode(log.parent)) == (0o600, 0o700)
    log.unlink()
    log.parent.rmdir()


def test_the_oldest_are_removed(tmp_path: Path, ended: int) -> None:
    names = [f"spark-202601{day:02}T000000Z-{ended}.log" for day in range(1, 8)]
    running = f"spark-20250101T000000Z-{os.getpid()}.log"
    for name in (*names, running, "notes.txt", "spark-mine.log"):
        (tmp_path / name).touch()
    newest = new_log(tmp_path, keep=3)
    assert {file.name for file in tmp_path.iterdir()} == {
        *names[-1:],
        running,
        newest.name,
        "notes.txt",
        "spark-mine.log",
    }


def test_temporary_ones_too(tmp_path: Path, ended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old = tmp_path / "tallybook-log-old" / f"spark-20260101T000000Z-{ended}.log"
    old.parent.mkdir()
    old.touch()
    newest = new_log(keep=1)
    assert list(tmp_path.iterdir()) == [newest.parent]
