"""Lists what a datasource of files contains, without Spark: local folders directly, object stores through delta-rs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from pyarrow.fs import FileSelector, FileType, PyFileSystem

from tallybook.errors import fail
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.location import Location, is_hidden
from tallybook.secrets import hide_secrets
from tallybook.storage.credentials import delta_options

MOST_NAMES = 10_000
"""Listing stops after so many names: a lake may have millions of files."""
_LOG = "_delta_log"
_SHORT = {"timeout": "10s", "connect_timeout": "5s", "max_retries": "1", "retry_timeout": "10s"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNREACHED = "check the url, the credential and the network"
_MISSING = "an output creates it; if the data should be there already, correct `path_prefix`"


def data_files(location: Location) -> list[str]:
    """Returns the files below a location, by their paths in it. Hidden files do not count."""
    return list(islice((path for path, is_folder in _entries(location) if not is_folder), MOST_NAMES))


def delta_tables(location: Location) -> list[str]:
    """Returns the folders below a location that are Delta tables, by their paths in it."""
    return list(islice((path for path, is_table in _entries(location, _LOG) if is_table), MOST_NAMES))


def _entries(location: Location, sign: str | None = None) -> Iterator[tuple[str, bool]]:
    """Yields visible files and, if they contain an entry of the name `sign`, folders, which are True. Folders are
    listed one after the other, so that a caller can stop early."""
    list_folder = _local_lister(location.local_path) if location.local_path is not None else _object_lister(location)
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        entries = sorted(list_folder(folder))
        if sign is not None and (sign, True) in entries:
            yield folder or ".", True
            continue
        visible = [(f"{folder}/{name}".lstrip("/"), is_folder) for name, is_folder in entries if not is_hidden(name)]
        yield from ((path, False) for path, is_folder in visible if not is_folder)
        waiting += [path for path, is_folder in reversed(visible) if is_folder]


Lister = Callable[[str], list[tuple[str, bool]]]
"""Returns the names in a folder, and whether each is a folder."""


def _local_lister(root: str) -> Lister:
    """Lists folders of this machine. Links to folders are not followed."""
    if Path(root).is_file():
        raise fail("DataLoadError", f"{root} is a file, not a folder", hint="correct `path_prefix`: it names a folder")
    if not Path(root).is_dir():
        raise fail("DataNotFound", f"the folder {root} does not exist", hint=_MISSING)

    def list_folder(folder: str) -> list[tuple[str, bool]]:
        try:
            with os.scandir(Path(root, folder)) as entries:
                linked = ((entry, entry.is_symlink() and entry.is_dir()) for entry in entries)
                return [(entry.name, entry.is_dir()) for entry, is_link in linked if not is_link]
        except OSError as error:
            raise fail("DataLoadError", f"the folder {error.filename} cannot be read: {error.strerror}") from error

    return list_folder


def _object_lister(location: Location) -> Lister:
    """Lists folders of an object store through delta-rs. It holds Python's lock while it waits for an answer, so each
    request has a short time limit."""
    from deltalake.fs import DeltaStorageHandler

    def list_folder(folder: str) -> list[tuple[str, bool]]:
        try:
            handler = DeltaStorageHandler(location.target, (delta_options(location) or {}) | _SHORT)
            found = PyFileSystem(handler).get_file_info(FileSelector(folder, allow_not_found=True))
        except (OSError, ValueError) as error:
            message = f"{location.target} cannot be reached: {_reason(error)}"
            raise fail("DataLoadError", message, hint=_UNREACHED, cause=UNAVAILABLE) from error
        return [(entry.base_name, entry.type == FileType.Directory) for entry in found]

    return list_folder


def _reason(error: Exception) -> str:
    """Returns the causes that delta-rs lists one below the other, on one line and without colours."""
    lines = (line.strip(" \u21b3") for line in _COLOUR.sub("", str(error)).splitlines())
    return hide_secrets(": ".join(line for line in lines if line))
