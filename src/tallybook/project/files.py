"""Finds and reads the YAML files of a workspace safely.

A pipe, a device or a huge file named `x.yaml` must not make a command wait: only regular files are read, and no more of
them than is allowed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

SETTINGS_FILE = "tallybook.yaml"
ENVIRONMENT_VARIABLE = "TALLYBOOK_ENV"
"""The environment variable that names the environment of the settings to use."""
MAX_BYTES = 2_000_000
"""The maximum size of a file of definitions."""
_ENDINGS = (".yaml", ".yml")
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnreadableError(Exception):
    """Says why a file or folder cannot be read, and what to do about it."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


def read_bytes(path: Path) -> bytes:
    """Returns the content of a regular file of at most `MAX_BYTES`; raises UnreadableError for anything else."""
    try:
        _refuse(path.stat())
        # Between the two looks another process may put a pipe there, and opening one waits for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            _refuse(os.fstat(handle))
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableError(f"the file cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise _too_large(len(content))
    return content


def _refuse(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
        raise UnreadableError(f"this is {kind}, not a regular file", "move it, or give it another name")
    if status.st_size > MAX_BYTES:
        raise _too_large(status.st_size)


def _too_large(size: int) -> UnreadableError:
    return UnreadableError(
        f"the file has {size / 1e6:.1f} MB; the maximum is {MAX_BYTES / 1e6:.0f} MB",
        "keep rows in data files: `data: {table: {file: path}}`",
    )


@dataclass
class FoundFiles:
    """The YAML files of a workspace in name order, and the folders that were not searched."""

    files: list[Path] = field(default_factory=list)
    unreadable: list[tuple[Path, UnreadableError]] = field(default_factory=list)
    """Folders that cannot be listed."""
    links: list[Path] = field(default_factory=list)
    """Links to folders. They are not followed: they may lead out of the workspace, or in a circle."""


def find_files(root: Path) -> FoundFiles:
    """Finds every YAML file, except in hidden folders and in workspaces inside the workspace."""
    result = FoundFiles()

    def note(error: OSError) -> None:
        hint = "make it readable, or begin its name with a dot so that it is ignored"
        reason = UnreadableError(f"the folder cannot be read: {error.strerror}", hint)
        result.unreadable.append((Path(error.filename), reason))

    for folder, folders, files in os.walk(root, onerror=note):
        here = Path(folder)
        if here != root and SETTINGS_FILE in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        result.links += (here / name for name in folders if (here / name).is_symlink())
        result.files += (here / name for name in sorted(files) if name.endswith(_ENDINGS))
    return result


def has_settings(folder: Path) -> bool:
    """True if anything has the name of the settings file. If it cannot be read, that is a problem to report."""
    return os.path.lexists(folder / SETTINGS_FILE)
