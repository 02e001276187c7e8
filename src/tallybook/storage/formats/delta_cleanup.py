"""Finds files of a Delta table that no kept version needs. The log of the table is never changed.

Only files in folders that outputs of known runs have made are found. Files that other programs added to the table, or
put into its folder, stay.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from tallybook.errors import fail
from tallybook.model.location import Location, is_hidden
from tallybook.storage.formats.delta_changes import RUN
from tallybook.storage.formats.delta_table import open_table, table_files, table_root
from tallybook.storage.output import is_own_folder, run_of_folder


def unneeded_files(
    location: Location, versions: Collection[int], before: datetime, runs: Collection[str]
) -> tuple[Path, ...]:
    """Returns the files of a local table, written before a time by one of the runs, that no kept version needs.

    Kept are `versions`, the newest version, the one that was the newest at that time, and all since then. Raises a
    problem if a kept version cannot be read, or if a run has committed that is not one of `runs`: its store may need
    other versions.
    """
    table = open_table(replace(location, version=None))
    if table is None:
        return ()
    history = table.history()
    unknown = sorted({entry[RUN] for entry in history if RUN in entry} - set(runs))
    if unknown:
        message = f"{location} was also written by run {unknown[0]}, which this metadata store does not know"
        raise fail("WriteFailed", message, hint="only its own store knows which versions are needed")
    moment = before.timestamp() * 1000
    older = [entry["version"] for entry in history if entry["timestamp"] <= moment]
    since = [entry["version"] for entry in history if entry["timestamp"] > moment]
    kept = {table.version(), *versions, *since, *([max(older)] if older else [])}
    needed = {file for version in kept for file in _files(replace(location, version=version))}
    root = Path(table_root(location))
    own = [folder for folder in sorted(root.iterdir()) if is_own_folder(folder) and run_of_folder(folder) in runs]
    files = (Path(path, name) for folder in own for path, _, names in os.walk(folder) for name in sorted(names))
    in_use = {Path(file).parent for file in needed}
    unneeded = (file for file in files if str(file) not in needed)
    return tuple(
        file for file in unneeded if _is_older(file, before) and not (file.parent in in_use and is_hidden(file.name))
    )


def _files(location: Location) -> Iterator[str]:
    """Yields the files that a version of a table consists of."""
    table = open_table(location)
    if table is not None:
        yield from (file.absolute(location) for file in table_files(location, table))


def _is_older(file: Path, before: datetime) -> bool:
    status = file.lstat()
    return not file.is_symlink() and file.is_file() and status.st_mtime < before.timestamp()
