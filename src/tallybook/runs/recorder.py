"""Records in the store what happens while a run is executed, and how it ends: no run stays active after its process has
left it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from tallybook.engine.events import (
    CheckTested,
    Event,
    Failed,
    Finished,
    OutputWritten,
    StepPlanned,
    StepStarted,
    Warned,
)
from tallybook.errors import Problem, ProblemError, RunError, StoreError, TallybookError
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run
from tallybook.operations.base import Step
from tallybook.storage.failure import SPARK_ERRORS, reason
from tallybook.store.store import Store


@dataclass
class Recorder:
    """An observer that records one attempt at a run. It also keeps outputs, checks and warnings for the caller."""

    store: Store
    run: Run
    outputs: list[OutputResult] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _current: Step | None = None
    _planned: list[OperationResult] = field(default_factory=list)
    """Operations that are not recorded yet. They are done when an output that needs them is written."""

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted(step):
                self._current = step
            case StepPlanned(step):
                self._planned.append(_result(step))
            case CheckTested(_, checked):
                self.store.record_check(self.run, checked)
                self.checks.append(checked)
            case OutputWritten(step, result, seconds):
                self._planned.append(_result(step, seconds))
                self._record_planned()
                self.outputs += [result] if result is not None else []
            case Warned(message):
                self.warnings.append(message)
                self.store.warn_run(self.run, message)
            case Failed(step, problems) if step is not None and problems:
                self._record_before(step)
            case Finished():
                self._record_planned()

    @contextmanager
    def attributing_bugs(self) -> Iterator[None]:
        """Turns an error that is not a problem of the user's into an InternalError of the current operation."""
        try:
            yield
        except TallybookError:
            raise
        except Exception as error:
            problem = _internal_error(error)
            if self._current is not None:
                self._record_before(self._current)
                problem = self._current.attribute(problem)
            raise RunError([problem]) from error

    def _record_before(self, step: Step) -> None:
        """Records the operations before a step that failed, if the store can: the failure is more important."""
        with suppress(StoreError):
            self._record_planned(before=step.seq)

    def _record_planned(self, before: int | None = None) -> None:
        done = [result for result in self._planned if before is None or result.seq < before]
        if done:
            self.store.record_operations(self.run, *done)
        self._planned.clear()


def _result(step: Step, seconds: float | None = None) -> OperationResult:
    duration = None if seconds is None else round(seconds * 1000)
    return OperationResult(seq=step.seq, name=step.name, type=step.type, duration_ms=duration)


@contextmanager
def recording_outcome(store: Store, run: Run, log: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Records a run as cancelled if the block is interrupted, and as failed if an error leaves the block.

    If the store cannot record it, the error still describes what ended the run, and the next command that opens the
    store records it.
    """
    try:
        yield
    except ProblemError as error:
        raise _failed(store, run, error.problems, log()) from error
    except TallybookError as error:
        _record(store, run, Problem("InternalError", error.message, error.hint, project=run.project_id))
        raise
    except Exception as error:
        raise _failed(store, run, [_internal_error(error)], log()) from error
    except BaseException:
        _record(store, run, None)
        raise


def _internal_error(error: Exception) -> Problem:
    description = reason(error) if isinstance(error, SPARK_ERRORS) else error
    return Problem("InternalError", f"{type(error).__name__}: {description}")


def _failed(store: Store, run: Run, problems: Sequence[Problem], log: str | None) -> RunError:
    first, *others = [problem.within(project=run.project_id) for problem in problems]
    unrecorded = _record(store, run, first)
    if unrecorded is not None:
        also = f"the failure could not be recorded: {unrecorded.message}; the next command that opens the store does it"
        first = replace(first, hint=f"{first.hint}; {also}" if first.hint else also)
    return RunError([first, *others], run_id=run.id, log=log)


def _record(store: Store, run: Run, problem: Problem | None) -> StoreError | None:
    """Records that the run failed or, without a problem, that it was cancelled. Returns the error if that was not
    possible; None if the run has ended already or belongs to another process."""
    try:
        if problem is None:
            store.cancel_run(run)
        else:
            store.fail_run(run, problem)
    except StoreError as error:
        return error if store.abandon_run(run, problem) else None
    return None
