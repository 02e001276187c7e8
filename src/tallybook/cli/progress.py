"""Progress of a run on a terminal: one line that says what is being done, gone when it is done."""

from __future__ import annotations

from tallybook.cli.screen import clear_progress, say_progress
from tallybook.engine.pipeline import Listener
from tallybook.operations.base import Step


class Progress(Listener):
    """Shows the operation that a run is at."""

    def started(self, step: Step) -> None:
        doing = "computing and writing" if step.publishes is not None else "planning"
        say_progress(f"{step.seq}. {step.name}: {doing} …")

    def finished(self, _step: Step, _seconds: float) -> None:
        clear_progress()
