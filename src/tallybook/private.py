"""Makes folders and files that only their owner can read: logs, the store and other files of the product."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(path: Path) -> Path:
    """Makes a folder, and the missing ones above it, for the owner only. An existing folder stays as it is."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


def close_folder(path: Path) -> None:
    """Makes a folder of ours accessible to its owner only, if possible: older versions left it open."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except OSError:
        return


def make_private_file(path: Path) -> Path:
    """Makes an empty file for the owner only. An existing file stays as it is."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path
