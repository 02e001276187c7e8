"""The observers of a run that the command line has: progress on a terminal, log lines, a file of events."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.screen import is_watched, log, logs_json, say_warning
from tallybook.errors import UsageError

if TYPE_CHECKING:
    from tallybook.documents.events import EventDocument
    from tallybook.engine.events import Observer

EventsOption = Annotated[
    Path | None,
    typer.Option("--events", metavar="FILE", help="Append what happens in each run to this file, as lines of JSON."),
]
Observers = Callable[[], "tuple[Observer, ...]"]
"""Makes new observers. Runs at the same time need their own."""


@contextmanager
def watching(events: Path | None = None, *, progress: bool = True) -> Iterator[Observers]:
    """Yields a function that makes the observers of a run; the file of events stays open in the block."""
    with _event_file(events) as to_file:
        yield lambda: tuple(_observers(to_file, progress=progress))


def _observers(to_file: Callable[[EventDocument], None] | None, *, progress: bool) -> Iterator[Observer]:
    if progress and is_watched():
        from tallybook.cli.progress import show_progress

        yield show_progress
    if to_file is not None or logs_json():
        from tallybook.documents.events import EventWriter

        yield EventWriter(*([to_file] if to_file is not None else []), *([_to_log] if logs_json() else []))


def _to_log(event: EventDocument) -> None:
    from tallybook.documents.logs import LogLine

    log(LogLine.of_event(event))


@contextmanager
def _event_file(file: Path | None) -> Iterator[Callable[[EventDocument], None] | None]:
    """Yields a function that appends events to the file; None without one. Raises UsageError if it cannot be opened.

    A line is one write to a file that is open for appending, so that processes can share it. A file that can no longer
    be written is a warning: the run is more important.
    """
    if file is None:
        yield None
        return
    if str(file) == "-":
        raise UsageError("--events needs a file: standard output has the results", "name a file, or a named pipe")
    try:
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"--events: '{file}' cannot be written: {error.strerror}") from None
    broken = False

    def write(event: EventDocument) -> None:
        nonlocal broken
        from tallybook.documents.base import as_json

        try:
            if not broken:
                os.write(handle, (json.dumps(as_json(event)) + "\n").encode())
        except OSError as error:
            broken = True
            say_warning(f"events are no longer written to '{file}': {error.strerror}")

    try:
        yield write
    finally:
        os.close(handle)
