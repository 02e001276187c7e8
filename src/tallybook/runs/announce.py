"""Tells the observers of a run how it ended, also if it was refused before there was a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tallybook.engine.events import Event, Observer, RunEnded, RunOpened, RunRefused
from tallybook.errors import TallybookError
from tallybook.model.run import Run


@dataclass
class _Opened:
    """An observer that remembers the run."""

    run: Run | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunOpened):
            self.run = event.run


@contextmanager
def announcing(
    observers: Sequence[Observer], project_id: str | None = None, period: str | None = None
) -> Iterator[Sequence[Observer]]:
    """Yields the observers for the run in the block, and tells them its end when the block is left.

    A refusal is told if the project and the period are known: a retry takes those of its run.
    """
    opened = _Opened()
    try:
        yield (opened, *observers)
    except BaseException as error:
        if opened.run is not None:
            is_failure = isinstance(error, Exception)
            _notify(observers, RunEnded(opened.run, "failed" if is_failure else "cancelled", error))
        elif isinstance(error, TallybookError) and project_id is not None and period is not None:
            _notify(observers, RunRefused(project_id, period, error))
        raise
    if opened.run is not None:
        _notify(observers, RunEnded(opened.run, "completed"))


def _notify(observers: Sequence[Observer], event: Event) -> None:
    for observer in observers:
        observer(event)
