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


def cache_folder(name: str = "") -> Path | None:
    """Makes and returns a folder in the cache of this user, or the cache itself.

    Returns None if it belongs to someone else, if others can change it, or if it cannot be written. The cache is
    `$XDG_CACHE_HOME/tallybook`, by default `~/.cache/tallybook`.
    """
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = make_private_folder(Path(home).absolute() / "tallybook" / name)
        for path in {folder.parent, folder} if name else {folder}:
            close_folder(path)
            status = path.stat()
            if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
                return None
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


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
