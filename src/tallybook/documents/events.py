"""The events of runs as documents: the lines of `--events FILE`, and the log lines that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from tallybook.documents.base import Document, IfKnown
from tallybook.documents.problems import ErrorDetails, ProblemDocument, listed
from tallybook.engine.events import (
    CheckTested,
    Event,
    OutputWritten,
    RunEnded,
    RunOpened,
    RunRefused,
    StepPlanned,
    StepStarted,
    Warned,
)
from tallybook.errors import ProblemError, RunError, TallybookError, exit_of
from tallybook.model.run import OutputResult, Run
from tallybook.operations.base import Step


class OperationRef(Document):
    """An operation of a project."""

    seq: int
    """The number of the operation."""
    name: str
    """The name of the operation."""
    type: str
    """The type of the operation."""

    @classmethod
    def of(cls, step: Step) -> OperationRef:
        return cls(seq=step.seq, name=step.name, type=step.type)


class _RunEvent(Document):
    time: datetime
    """When it happened, in UTC."""
    project: str
    """The id of the project."""
    period: str
    """The period of the run."""
    run_id: str
    """The id of the run."""
    attempt: int
    """1, and one more for each retry of the run."""


class _Failure(Document):
    exit_code: int
    """The exit code of a command that ends like this; docs/reference/exit-codes.md lists them."""
    retry: bool
    """True if the same command may succeed later without a change of the project or the data."""
    problems: tuple[ProblemDocument, ...] = ()
    """What is wrong."""
    error: IfKnown[ErrorDetails] = None
    """What went wrong, if it is not a list of problems."""


class RunRefusedEvent(_Failure):
    """A run was refused. Nothing is recorded."""

    event: Literal["run.refused"] = "run.refused"
    """The name of the event."""
    time: datetime
    """When it happened, in UTC."""
    project: str
    """The id of the project."""
    period: str
    """The period that was asked for."""


class RunStartedEvent(_RunEvent):
    """A run is recorded. It has read no rows yet."""

    event: Literal["run.started"] = "run.started"
    """The name of the event."""
    project_version: int
    """The version of the project."""
    as_of: date
    """The date bitemporal data is read at."""
    sandbox: bool
    """True if the outputs go to the sandbox."""


class OperationEvent(_RunEvent):
    """An operation is being planned, or an output computed; or an operation is part of the Spark plan. Its rows are
    computed with the first output or check that needs them."""

    event: Literal["operation.started", "operation.planned"]
    """The name of the event."""
    operation: OperationRef
    """The operation."""


class CheckTestedEvent(_RunEvent):
    """A check is computed."""

    event: Literal["check.tested"] = "check.tested"
    """The name of the event."""
    operation: OperationRef
    """The check."""
    passed: bool
    """True if nothing failed."""
    tested: int
    """How many rows or groups were tested."""
    failed: int
    """How many of them failed."""
    on_failure: Literal["fail", "warn"]
    """What a failure does: it ends the run, or it is a warning."""


class OutputWrittenEvent(_RunEvent):
    """The rows of an output are computed and published."""

    event: Literal["output.written"] = "output.written"
    """The name of the event."""
    operation: OperationRef
    """The output."""
    duration_ms: int
    """How long it took, with all operations that had to be computed for it."""
    output: OutputResult
    """What it wrote."""


class WarningEvent(_RunEvent):
    """Something that a user should know and that does not stop the run."""

    event: Literal["run.warning"] = "run.warning"
    """The name of the event."""
    message: str
    """The warning."""


class RunEndedEvent(_RunEvent, _Failure):
    """A run is completed, failed or cancelled."""

    event: Literal["run.ended"] = "run.ended"
    """The name of the event."""
    status: Literal["completed", "failed", "cancelled"]
    """How it ended."""
    duration_ms: int
    """The time since the run was recorded."""
    log: IfKnown[str] = None
    """The file with Spark's account of the failure."""


EventDocument = Annotated[
    RunRefusedEvent
    | RunStartedEvent
    | OperationEvent
    | CheckTestedEvent
    | OutputWrittenEvent
    | WarningEvent
    | RunEndedEvent,
    Field(discriminator="event"),
]
"""One line of `--events FILE`."""


class EventWriter:
    """An observer of one run after the other, which gives the document of each event to a function."""

    def __init__(self, *write: Callable[[EventDocument], None]) -> None:
        self._write = write
        self._run: Run | None = None
        self._since = datetime.now(UTC)

    def __call__(self, event: Event) -> None:
        document = self._document(event)
        if document is not None:
            for write in self._write:
                write(document)

    def _document(self, event: Event) -> EventDocument | None:
        now = datetime.now(UTC)
        if isinstance(event, RunRefused):
            return RunRefusedEvent(time=now, project=event.project_id, period=event.period, **_failure(event.error))
        if isinstance(event, RunOpened):
            self._run, self._since = event.run, now
        run = self._run
        if run is None:
            return None
        common: dict[str, Any] = {
            "time": now,
            "project": run.project_id,
            "period": run.period,
            "run_id": run.id,
            "attempt": run.attempt,
        }
        match event:
            case RunOpened():
                return RunStartedEvent(
                    **common, project_version=run.project_version, as_of=run.as_of, sandbox=run.sandbox
                )
            case StepStarted(step):
                return OperationEvent(**common, event="operation.started", operation=OperationRef.of(step))
            case StepPlanned(step):
                return OperationEvent(**common, event="operation.planned", operation=OperationRef.of(step))
            case CheckTested(step, result):
                return CheckTestedEvent(
                    **common,
                    operation=OperationRef.of(step),
                    passed=result.passed,
                    tested=result.tested,
                    failed=result.failed,
                    on_failure=result.on_failure,
                )
            case OutputWritten(step, OutputResult() as output, seconds):
                return OutputWrittenEvent(
                    **common, operation=OperationRef.of(step), duration_ms=round(seconds * 1000), output=output
                )
            case Warned(message):
                return WarningEvent(**common, message=message)
            case RunEnded(_, status, error):
                self._run = None
                log = error.log if isinstance(error, RunError) else None
                took = round((now - self._since).total_seconds() * 1000)
                return RunEndedEvent(**common, status=status, duration_ms=took, log=log, **_failure(error))
        return None


def _failure(error: BaseException | None) -> dict[str, Any]:
    """Returns the values of `_Failure` for an error, or for none."""
    exit = exit_of(error)
    values: dict[str, Any] = {"exit_code": exit.code, "retry": exit.retry}
    if isinstance(error, ProblemError) and error.problems:
        return values | {"problems": listed(error.problems)}
    if isinstance(error, TallybookError):
        details = ErrorDetails(type=type(error).__name__, message=error.message, hint=error.hint)
        return values | {"error": details}
    if error is None:
        return values
    return values | {"error": ErrorDetails(type=exit.name, message=exit.meaning)}
