"""Problems, and what a command prints when it fails."""

from __future__ import annotations

from collections.abc import Iterable

from tallybook.documents.base import Document, IfKnown
from tallybook.errors import Problem, ProblemError, RunError, TallybookError


class BadValueDocument(Document):
    """A value in the data that does not fit its column, or a row that cannot be read."""

    file: str
    """The file, or the table."""
    row: int | None
    """The number of the row in the file, from 1; null if it is not known."""
    column: str | None
    """The name of the column in the data; null if the whole row cannot be read."""
    value: str | None
    """The value as it is in the data, null for NULL; the beginning of a long one."""
    expected: str
    """The type of the column."""
    cell: str | None
    """The address of a cell in a sheet, such as `Sheet1!C14`; null in other files."""


class ProblemDocument(Document):
    """One thing that is wrong."""

    type: str
    """The type of the problem; docs/reference/problems.md lists them."""
    code: IfKnown[str] = None
    """The code of the append rule that is broken."""
    message: str
    """What is wrong."""
    hint: IfKnown[str] = None
    """What to do."""
    file: str | None
    """The file, relative to the workspace."""
    line: int | None
    """The line in the file, from 1."""
    column: int | None
    """The column in the line, from 1."""
    project: IfKnown[str] = None
    """The id of the project."""
    seq: IfKnown[int] = None
    """The number of the operation."""
    operation: IfKnown[str] = None
    """The name of the operation."""
    path: str | None
    """The keys from the top of the YAML document to the value, such as `project.operations[0].name`."""

    bad_values: IfKnown[tuple[BadValueDocument, ...]] = None
    """The values in the data that are wrong, at most 100."""

    @classmethod
    def of(cls, problem: Problem) -> ProblemDocument:
        return cls.model_validate(problem.to_json(), strict=False)


class Problems(Document):
    """A list of problems with its length."""

    problems: tuple[ProblemDocument, ...] = ()
    """What is wrong, in file order."""
    count: int = 0
    """The number of problems."""


def listed(problems: Iterable[Problem]) -> tuple[ProblemDocument, ...]:
    """Returns the documents of problems."""
    return tuple(map(ProblemDocument.of, problems))


class ErrorDetails(Document):
    """An error that is not about the user's files or data."""

    type: str
    """`UsageError`, `SessionError`, `StoreError` or, for a bug, `InternalError`."""
    message: str
    """What is wrong."""
    hint: str | None = None
    """What to do."""
    log: IfKnown[str] = None
    """The file with the traceback of a bug."""


class ErrorDocument(Problems):
    """What every command prints when it fails."""

    error: IfKnown[ErrorDetails] = None
    """What went wrong, if it is not a list of problems."""
    run_id: IfKnown[str] = None
    """The run that failed."""
    log: IfKnown[str] = None
    """The file with Spark's account of the failure."""

    @classmethod
    def of(cls, error: TallybookError) -> ErrorDocument:
        problems = listed(error.problems) if isinstance(error, ProblemError) else ()
        if not problems:
            details = ErrorDetails(type=type(error).__name__, message=error.message, hint=error.hint)
            return cls(error=details)
        if isinstance(error, RunError):
            return cls(problems=problems, count=len(problems), run_id=error.run_id, log=error.log)
        return cls(problems=problems, count=len(problems))

    @classmethod
    def of_bug(cls, message: str, log: str) -> ErrorDocument:
        """Returns the document for an unexpected error; `log` has its traceback."""
        details = ErrorDetails(type="InternalError", message=message, hint=f"the traceback is in {log}", log=log)
        return cls(error=details)
