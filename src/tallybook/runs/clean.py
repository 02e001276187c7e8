"""Removes what the product has left and nobody needs any more: `tallybook clean`.

Nothing is removed because of its folder alone. A file must have a name that the product gives, or be recorded in the
store as written by an output; it must be older than the limit; and it must not be a link. What is still needed stays:
files of registered versions, of versions that recent runs read or wrote, and of runs that are under way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from tallybook.engine.logs import is_running_log
from tallybook.errors import ProblemError, TallybookError
from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.storage.formats import format_of
from tallybook.storage.output import RUN_ID
from tallybook.storage.publish import leftovers, remove_leftovers
from tallybook.store.retention import RecordedRun
from tallybook.store.store import Store

CleanKind = Literal["logs", "scratch", "sandbox", "staging", "versions"]
_LOG = re.compile(r"spark-\d{8}T\d{6}\.\d{6}Z-\d+\.log")
_SCRATCH = re.compile(rf"{RUN_ID}-[0-9a-f]{{32}}")


@dataclass(frozen=True)
class Leftover:
    """Files of one place that nobody needs, or the reason why they stay."""

    kind: CleanKind
    path: Path
    files: tuple[Path, ...] = ()
    size: int = 0
    """In bytes."""
    left: str | None = None
    """Why nothing is removed here."""


@dataclass(frozen=True)
class Cleaner:
    """Finds and removes leftovers that are older than a time."""

    store: Store | None
    private: Path
    """The folder of the product in the workspace."""
    sandbox: Path
    before: datetime

    def find(self) -> Iterator[Leftover]:
        """Yields what can be removed, and what stays for a reason that a user should know. Changes nothing."""
        yield from self._logs()
        yield from self._scratch()
        of_drafts = list(self._sandbox())
        yield from of_drafts
        yield from self._staging()
        yield from self._versions({found.path for found in of_drafts})

    def remove(self, found: Leftover) -> Leftover:
        """Removes the files, and folders that are empty then. Returns what was removed, or why it stays."""
        if found.left is not None:
            return found
        if found.kind == "staging":
            free = remove_leftovers(found.path)
            return found if free else replace(found, files=(), size=0, left="a run is writing there")
        removed = []
        for file in found.files:
            try:
                if self._is_old(file):
                    file.unlink()
                    removed.append(file)
            except OSError as error:
                return replace(found, files=tuple(removed), left=f"{file} cannot be removed: {error.strerror}")
        for folder in sorted({file.parent for file in removed}, key=lambda folder: len(folder.parts), reverse=True):
            self._remove_empty(folder, found.path if found.kind == "versions" else self._top(found))
        return found

    def _top(self, found: Leftover) -> Path:
        """The folder that stays even if it is empty."""
        return self.sandbox.resolve() if found.kind == "sandbox" else found.path.parent

    def _remove_empty(self, folder: Path, top: Path) -> None:
        while folder != top and top in folder.parents:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _logs(self) -> Iterator[Leftover]:
        for log in _entries(self.private / "logs"):
            if _LOG.fullmatch(log.name) and self._is_old(log) and not is_running_log(log):
                yield self._leftover("logs", log, [log])

    def _scratch(self) -> Iterator[Leftover]:
        for folder in _entries(self.private / "scratch"):
            if _SCRATCH.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                yield from self._whole("scratch", folder, _files_below(folder))

    def _sandbox(self) -> Iterator[Leftover]:
        top = self.sandbox.resolve()
        for target, writers in self._targets.items():
            if not all(entry.run.sandbox for entry in writers) or top not in Path(target).parents:
                continue
            last = writers[-1]
            if not last.run.is_active and (last.run.finished_at or last.run.created_at) < self.before:
                location = _location_at(last, target)
                if location is not None and _is_direct(target):
                    yield from self._whole("sandbox", Path(target), format_of(location).owned_files(location))

    def _staging(self) -> Iterator[Leftover]:
        for target in self._targets:
            folders = [folder for folder in leftovers(Path(target)) if folder.lstat().st_mtime < self._limit]
            if folders:
                files = [file for folder in folders for file in _files_below(folder)]
                size = sum(file.lstat().st_size for file in files)
                yield Leftover("staging", Path(target), tuple(files) or tuple(folders), size)

    def _versions(self, removed: Collection[Path]) -> Iterator[Leftover]:
        for target, writers in self._targets.items():
            location = _location_at(writers[-1], target)
            if (
                location is None
                or Path(target) in removed
                or not location.source.keeps_versions
                or not _is_direct(target)
            ):
                continue
            runs = {entry.run.id for entry in self._runs if not entry.run.is_active}
            if any(entry.run.is_active for entry in writers):
                yield Leftover("versions", Path(target), left="a run is writing there")
                continue
            try:
                files = format_of(location).unneeded_files(location, self._kept(target), self.before, runs)
            except ProblemError as error:
                yield Leftover("versions", Path(target), left=error.problem.message)
            except (TallybookError, OSError) as error:
                yield Leftover("versions", Path(target), left=str(error))
            else:
                if files:
                    yield self._leftover("versions", Path(target), files)

    def _kept(self, target: str) -> set[int]:
        """Returns the versions of a table that are registered, or that runs since the limit have read or made."""
        registered = self.store.registered_locations() if self.store is not None else ()
        recent = [entry for entry in self._runs if self._is_recent(entry)]
        read = [*registered, *(location for entry in recent for location in entry.reads)]
        versions = {location.get("version") for location in read if _path(location) == target}
        made = {
            entry.written_versions.get(seq)
            for entry in recent
            for seq, location in entry.destinations.items()
            if _path(location) == target
        }
        return {version for version in versions | made if version is not None and version >= 0}

    def _is_recent(self, entry: RecordedRun) -> bool:
        return entry.run.is_active or (entry.run.finished_at or entry.run.created_at) >= self.before

    @cached_property
    def _runs(self) -> Sequence[RecordedRun]:
        return tuple(self.store.recorded_runs()) if self.store is not None else ()

    @cached_property
    def _targets(self) -> Mapping[str, list[RecordedRun]]:
        """The local paths that runs of this workspace wrote to, each with all runs of the store that did, oldest
        first."""
        writers: dict[str, list[RecordedRun]] = {}
        own: set[str] = set()
        for entry in self._runs:
            for location in entry.destinations.values():
                path = _path(location)
                if path is not None:
                    writers.setdefault(path, []).append(entry)
                    if self.store is not None and entry.run.workspace_id == self.store.workspace_id:
                        own.add(path)
        return {path: found for path, found in writers.items() if path in own}

    @property
    def _limit(self) -> float:
        return self.before.timestamp()

    def _is_old(self, file: Path) -> bool:
        """True if it is a regular file, not a link, and nobody has written to it since the limit."""
        try:
            return file.is_file() and not file.is_symlink() and file.lstat().st_mtime < self._limit
        except OSError:
            return False

    def _whole(self, kind: CleanKind, path: Path, files: Sequence[Path]) -> Iterator[Leftover]:
        """Yields a place of which all files are old; one with newer files stays."""
        if files and all(map(self._is_old, files)):
            yield self._leftover(kind, path, files)

    def _leftover(self, kind: CleanKind, path: Path, files: Sequence[Path]) -> Leftover:
        return Leftover(kind, path, tuple(files), sum(file.lstat().st_size for file in files))


def _location_at(entry: RecordedRun, target: str) -> Location | None:
    bodies = (body for body in entry.destinations.values() if _path(body) == target)
    return next((replace(Location.from_json(body), version=None) for body in bodies), None)


def _path(location: Json) -> str | None:
    """Returns the local path of a recorded location; None for urls and tables of databases and catalogs."""
    found = Location.from_json(location)
    local = found.local_path if found.source.path_prefix is not None else None
    return None if local is None else os.path.normpath(local)


def _is_direct(target: str) -> bool:
    """True if no part of the path is a link: somebody may have put another folder in its place."""
    return os.path.realpath(target) == target


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _files_below(folder: Path) -> list[Path]:
    """Returns everything below a folder that is not a folder. Links are not followed, and are in the list."""
    found = []
    for path, folders, files in os.walk(folder):
        found += [Path(path, name) for name in files]
        found += [Path(path, name) for name in folders if Path(path, name).is_symlink()]
    return sorted(found)
