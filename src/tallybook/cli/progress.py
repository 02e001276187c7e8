"""Progress of a run on a terminal: one line that says what is being done, gone when it is done."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tallybook.engine.pipeline import Listener
from tallybook.operations.base import Step

_CLEAR = "\r\x1b[2K"


@dataclass
class Progress(Listener):
    """Writes to standard error."""

    coloured: bool

    def started(self, step: Step) -> None:
        doing = "computing and writing" if step.type == "output" else "planning"
        self._line(f"{step.seq}. {step.name}: {doing} …")

    def finished(self, _step: Step, _seconds: float) -> None:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()

    def _line(self, text: str) -> None:
        sys.stderr.write(f"{_CLEAR}\x1b[2m{text}\x1b[0m" if self.coloured else f"{_CLEAR}{text}")
        sys.stderr.flush()
