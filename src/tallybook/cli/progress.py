"""Progress of a run on a terminal: one line, which is removed at the end."""

from __future__ import annotations

from tallybook.cli.screen import clear_progress, say_progress
from tallybook.engine.events import Event, Failed, Finished, RunEnded, RunOpened, RunRefused, StepStarted


def show_progress(event: Event) -> None:
    """Shows the current operation of a run. It is an observer of the run."""
    match event:
        case RunOpened(run):
            say_progress(f"{run.project_id} {run.period}: reading the inputs …")
        case StepStarted(step):
            doing = "planning" if step.publishes is None else "computing and writing"
            say_progress(f"{step.seq}. {step.name}: {doing} …")
        case Failed() | Finished() | RunEnded() | RunRefused():
            clear_progress()
