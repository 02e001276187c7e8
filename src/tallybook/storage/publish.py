"""Makes a finished file or folder visible at its target in one step, on a local file system.

A write keeps a lock and its folders next to the target, as hidden entries whose names contain the run and the
operation. Only the holder of the lock touches the folders, so a folder that it did not create was left by a killed run.
Nothing is removed because of the name of its folder alone: only files that Spark or an output has named are removed.
See docs/decisions/0003-publishing-plain-files.md.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallybook.storage.output import OUTPUT_NAME, is_own_file
from tallybook.storage.partitions import files_in_partitions, is_partition

_AT_FDCWD = -100
_EXCHANGE = 2
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_CHANGED_MEANWHILE = {errno.ENOENT, errno.ENOTEMPTY}
_ASIDE = "-old"
_STAGING = re.compile(rf"{OUTPUT_NAME}-[0-9a-f]{{32}}({_ASIDE})?")
_OF_SPARK = re.compile(r"part-\d+-[^/]*|_SUCCESS|_temporary|\.[^/]+\.crc")


def sibling(target: Path, name: str) -> Path:
    """Returns a hidden path next to the target, on the same file system."""
    return target.with_name(f".{target.name}.tallybook-{name}")


def leftovers(target: Path) -> list[Path]:
    """Returns the folders next to a target in which a write has staged files, whether it is under way or was killed."""
    prefix = sibling(target, "").name
    near = target.parent.iterdir() if target.parent.is_dir() else ()
    named = (path for path in near if path.name.startswith(prefix) and path.is_dir() and not path.is_symlink())
    return sorted(path for path in named if _STAGING.fullmatch(path.name.removeprefix(prefix)))


def remove_leftovers(target: Path) -> bool:
    """Repairs and removes what killed runs left next to a target. Returns False if somebody is writing to it."""
    try:
        with locked(target, wait=False):
            return True
    except BlockingIOError:
        return False


@contextmanager
def locked(target: Path, *, wait: bool = True) -> Iterator[None]:
    """Waits for the target's lock and holds it; first repairs and removes what a killed run left behind. Without
    `wait`, raises BlockingIOError if another process holds the lock.

    The lock file is removed in the end. So a process that waited for the lock may hold a removed file, and then opens
    the file again. A file of that name with content is not ours: it is used as a lock and not removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = sibling(target, "lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileExistsError(errno.EEXIST, "the lock of the output cannot be a special file", str(lock))
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if not (lock.exists() and os.path.samestat(os.fstat(handle), lock.stat())):
                continue
            try:
                _recover(target)
                yield
            finally:
                if not os.fstat(handle).st_size:
                    lock.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)


def publish(ready: Path, target: Path) -> None:
    """Replaces the target with a finished file or folder; a reader sees all of the old or all of the new.

    If the file system cannot exchange two names, the old folder is renamed first. For a short time there is nothing at
    the target, and after a kill in that time the next write restores the old folder.
    """
    if ready.is_file():
        ready.replace(target)
    elif not target.exists():
        ready.rename(target)
    elif _exchange(ready, target):
        _give_back(ready, target)
    else:
        aside = ready.with_name(ready.name + _ASIDE)
        target.rename(aside)
        ready.rename(target)
        _give_back(aside, target)


def link_into(source: Path, folder: Path, except_prefix: str) -> None:
    """Links the files that outputs have written into a folder to another folder, except those with a prefix."""
    for entry in files_in_partitions(source):
        if is_own_file(entry) and not entry.name.startswith(except_prefix):
            link = folder / entry.relative_to(source)
            link.parent.mkdir(parents=True, exist_ok=True)
            _link(str(entry), str(link))


def remove(path: Path) -> None:
    """Removes a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def clear(folder: Path) -> list[Path]:
    """Removes the files that Spark or an output has written into a folder and into the folders below it that are named
    after values; removes those of these folders that are empty then.

    Returns the other entries.
    """
    if not folder.is_dir() or folder.is_symlink():
        return []
    others: list[Path] = []
    for entry in list(folder.iterdir()):
        if is_own_file(entry) or (_OF_SPARK.fullmatch(entry.name) and not entry.is_symlink()):
            remove(entry)
        elif is_partition(entry):
            others += clear(entry)
        else:
            others.append(entry)
    if not others:
        folder.rmdir()
    return others


def _give_back(old: Path, target: Path) -> None:
    """Removes the folder that was replaced. Files that somebody has added at the last moment move to the new folder."""
    for entry in clear(old):
        moved = target / entry.relative_to(old)
        moved.parent.mkdir(parents=True, exist_ok=True)
        entry.rename(moved)
    clear(old)


def _recover(target: Path) -> None:
    """Restores a folder that was renamed, and removes what was staged."""
    prefix = sibling(target, "").name
    left = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
    for path in sorted(path for path in left if _STAGING.fullmatch(path.name.removeprefix(prefix))):
        if path.name.endswith(_ASIDE) and path.is_dir() and not os.path.lexists(target):
            path.rename(target)
        else:
            _clear_abandoned(path)


def _clear_abandoned(folder: Path) -> None:
    """Clears the folder of a killed run.

    The Spark of that run may outlive it for a while, and move and remove files in the folder meanwhile. So this tries
    again for two seconds, and then leaves what remains to the next write: it is hidden, and nobody reads it.
    """
    deadline = time.monotonic() + 2
    while True:
        try:
            clear(folder)
            return
        except OSError as error:
            if error.errno not in _CHANGED_MEANWHILE:
                raise
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)


def _link(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two names in one step; returns False if the file system cannot."""
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
