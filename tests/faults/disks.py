"""Disks that are full and folders that cannot be written: real ones, made with mounts where the user is root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes a folder read-only; only a mount can do so for root."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    _mount("--bind", str(folder), folder)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        _unmount(folder)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A folder that is a disk of its own, and soon full."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder)
    try:
        yield folder
    finally:
        _unmount(folder)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Fills the disk of a folder but for some bytes; removing the file makes room again."""
    file = folder / "ballast"
    with file.open("wb", buffering=0) as handle:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    handle.write(b"\0" * size)
            except OSError:
                continue
        if leave:
            handle.truncate(max(0, file.stat().st_size - leave))
    return file


def _mount(*arguments: str | Path) -> None:
    done = subprocess.run(["mount", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this machine lets nobody mount a file system: {done.stderr.strip()}")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", folder], check=True)
