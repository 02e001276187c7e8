"""Log lines: what a command says on standard error with `--log-format json`, one JSON object a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from tallybook.documents.base import Document, IfKnown
from tallybook.documents.events import (
    CheckTestedEvent,
    EventDocument,
    OperationEvent,
    OperationRef,
    OutputWrittenEvent,
    RunEndedEvent,
    RunRefusedEvent,
    RunStartedEvent,
    WarningEvent,
)
from tallybook.documents.problems import ProblemDocument
from tallybook.errors import Problem
from tallybook.text import printable

Level = Literal["info", "warning", "error"]


class LogLine(Document):
    """One line of the log of a command."""

    time: datetime
    """When it was written, in UTC."""
    level: Level
    """How important it is."""
    event: str
    """What happened: the name of an event of a run, `problem`, `warning`, `error` or `message`."""
    message: str
    """What a person reads."""
    hint: IfKnown[str] = None
    """What to do."""
    run_id: IfKnown[str] = None
    """The id of the run."""
    project: IfKnown[str] = None
    """The id of the project."""
    period: IfKnown[str] = None
    """The period of the run."""
    operation: IfKnown[OperationRef] = None
    """The operation of the run."""
    problem: IfKnown[ProblemDocument] = None
    """What is wrong, in full."""
    exit_code: IfKnown[int] = None
    """The exit code, where a run or the command ends."""

    @classmethod
    def now(cls, level: Level, event: str, message: str, **details: Any) -> LogLine:
        return cls(time=datetime.now(UTC), level=level, event=event, message=printable(message), **details)

    @classmethod
    def of_problem(cls, problem: Problem) -> LogLine:
        document = ProblemDocument.of(problem)
        message = f"{problem.type}: {problem.message}"
        return cls.now("error", "problem", message, hint=problem.hint, project=problem.project, problem=document)

    @classmethod
    def of_event(cls, event: EventDocument) -> LogLine:
        level, message = _words(event)
        return cls(
            time=event.time,
            level=level,
            event=event.event,
            message=printable(message),
            run_id=getattr(event, "run_id", None),
            project=event.project,
            period=event.period,
            operation=getattr(event, "operation", None),
            exit_code=getattr(event, "exit_code", None),
        )


def _words(event: EventDocument) -> tuple[Level, str]:
    match event:
        case RunRefusedEvent():
            return "error", f"the run of {event.project} for {event.period} was refused"
        case RunStartedEvent(project=project, project_version=version, period=period):
            where = " in the sandbox" if event.sandbox else ""
            return "info", f"run of {project} v{version} for {period} started{where}"
        case OperationEvent(operation=operation):
            verb = "started" if event.event == "operation.started" else "planned"
            return "info", f"operation {operation.seq} '{operation.name}' {verb}"
        case CheckTestedEvent(operation=operation, failed=failed, tested=tested):
            level: Level = "info" if event.passed else "warning"
            return level, f"check {operation.seq} '{operation.name}': {failed:,} of {tested:,} failed"
        case OutputWrittenEvent(operation=operation, output=output):
            rows = output.rows_written or 0
            return "info", f"output {operation.seq} wrote {rows:,} row{'' if rows == 1 else 's'} to {output.location}"
        case WarningEvent():
            return "warning", event.message
        case RunEndedEvent(status=status):
            return "info" if status == "completed" else "error", f"run {status} after {event.duration_ms} ms"
