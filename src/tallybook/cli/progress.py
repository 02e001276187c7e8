"""Progress of a run on a terminal: one line, which is removed at the end."""

from __future__ import annotations

from tallybook.cli.screen import clear_progress, say_progress
from tallybook.engine.events import Event, StepStarted


def show_progress(event: Event) -> None:
    """Shows the current operation of a run. It is an observer of the run."""
    match event:
        case StepStarted(step):
            doing = "planning" if step.publishes is None else "computing and writing"
            say_progress(f"{step.seq}. {step.name}: {doing} …")
        case _:
            clear_progress()
