"""Putting a finished file or folder in its place in one step, on a local file system.

Everything beside the target that belongs to a write under way is hidden and starts with `.NAME.tallybook-`. It is
touched only while the target's lock is held, so what is found there then was left by a killed run.
See docs/decisions/0003-publishing-plain-files.md.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


def beside(target: Path, what: str) -> Path:
    """A hidden place next to the target, on the same file system."""
    return target.with_name(f".{target.name}.tallybook-{what}")


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Hold the target's lock, waiting for others; first mend and clear what a killed run left behind.

    The lock file goes when the work is done, so one that was waited for may be gone by then and is opened again.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = beside(target, "lock")
    while True:
        with lock.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not (lock.exists() and os.path.samestat(os.fstat(handle.fileno()), lock.stat())):
                continue
            try:
                _recover(target, lock)
                yield
            finally:
                lock.unlink()
            return


def publish(ready: Path, target: Path) -> None:
    """Put what is ready in the target's place; a reader of the target sees all of the old or all of the new.

    Where the file system cannot exchange two names, the old content steps aside first: for a moment there is
    nothing, and after a kill in that moment the next write brings it back.
    """
    if not target.exists() or (target.is_file() and ready.is_file()):
        ready.replace(target)
    elif not _exchange(ready, target):
        target.rename(beside(target, "aside"))
        ready.rename(target)
        remove(beside(target, "aside"))


def link_into(source: Path, folder: Path, except_prefix: str) -> None:
    """Give the files of one folder a second name in another, but for those whose name has the prefix."""
    shutil.copytree(
        source,
        folder,
        copy_function=_link,
        dirs_exist_ok=True,
        ignore=lambda _, names: [name for name in names if name.startswith(except_prefix)],
    )


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _recover(target: Path, lock: Path) -> None:
    aside = beside(target, "aside")
    if aside.exists() and not target.exists():
        aside.rename(target)
    for path in list(target.parent.iterdir()):
        if path.name.startswith(beside(target, "").name) and path != lock:
            remove(path)


def _link(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step of the file system; False where it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(*names, _EXCHANGE)
        else:
            failed = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    except AttributeError:
        return False
    if not failed:
        return True
    if (code := ctypes.get_errno()) in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))
