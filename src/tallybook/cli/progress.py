"""Progress of a run on a terminal: one line that says what is being done, gone when it is done."""

from __future__ import annotations

from tallybook.cli.screen import clear_progress, say_progress
from tallybook.engine.events import Event, StepStarted


def show_progress(event: Event) -> None:
    """Shows the operation that a run is at, as an observer of it."""
    match event:
        case StepStarted(step):
            doing = "planning" if step.publishes is None else "computing and writing"
            say_progress(f"{step.seq}. {step.name}: {doing} …")
        case _:
            clear_progress()
