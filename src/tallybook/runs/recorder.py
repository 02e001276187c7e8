"""Records in the store what happens while a run is executed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from tallybook.engine.events import Event, Failed, Finished, OutputWritten, StepPlanned, Warned
from tallybook.errors import StoreError
from tallybook.model.run import OperationResult, OutputResult, Run
from tallybook.operations.base import Step
from tallybook.store.store import Store


@dataclass
class Recorder:
    """An observer that records one attempt at a run. It also keeps the outputs and warnings for the caller."""

    store: Store
    run: Run
    outputs: list[OutputResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _planned: list[OperationResult] = field(default_factory=list)
    """Operations that are not recorded yet. They are done when an output that needs them is written."""

    def __call__(self, event: Event) -> None:
        match event:
            case StepPlanned(step):
                self._planned.append(_result(step))
            case OutputWritten(step, result, seconds):
                self._planned.append(_result(step, seconds))
                self._record_planned()
                self.outputs += [result] if result is not None else []
            case Warned(message):
                self.warnings.append(message)
                self.store.warn_run(self.run, message)
            case Failed(step, problems) if step is not None and problems:
                with suppress(StoreError):  # the failure itself is more important than what came before it
                    self._record_planned(before=step.seq)
            case Finished():
                self._record_planned()

    def _record_planned(self, before: int | None = None) -> None:
        done = [result for result in self._planned if before is None or result.seq < before]
        if done:
            self.store.record_operations(self.run, *done)
        self._planned.clear()


def _result(step: Step, seconds: float | None = None) -> OperationResult:
    duration = None if seconds is None else round(seconds * 1000)
    return OperationResult(seq=step.seq, name=step.name, type=step.type, duration_ms=duration)
