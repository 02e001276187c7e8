"""Every error a user can meet, in one tree.

    TallybookError
    ├── UsageError          the command line or the call is wrong
    ├── SessionError        no usable Spark session or Java
    ├── StoreError          the metadata store cannot be opened, or refuses a change
    └── ProblemError        the user's project, data or test is wrong; carries Problems
        ├── ValidationError the checker found problems before anything ran
        └── RunError        a run failed; says where and where the log is

A `Problem` is a value: the checker returns a list of them, a run raises with one inside. `PROBLEM_TYPES` is the
list of all types, read by the docs, the golden tests and the constructor. Every error names its row of the exit codes.
"""

from __future__ import annotations

import difflib
import os
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from tallybook.exit_codes import (
    BUG,
    BUSY,
    FINE,
    INTERRUPTED,
    TERMINATED,
    UNAVAILABLE,
    USAGE,
    WRONG,
    ExitCode,
    common_exit,
)
from tallybook.source import Place
from tallybook.text import Line, Marked, shortened, unstyled


@dataclass(frozen=True)
class ProblemType:
    """A kind of problem: its name, when it is found, what it means, and the code of the append document if any."""

    name: str
    when: str
    meaning: str
    append_code: str | None = None
    exit: ExitCode = WRONG
    """The exit code of a command that this problem ends, unless the problem has another one."""


_EXITS = {"ConcurrentRun": BUSY, "SparkFailed": UNAVAILABLE}
"""The types of problems after which the same command may succeed later."""


def _types(*rows: tuple[str, str, str] | tuple[str, str, str, str]) -> dict[str, ProblemType]:
    return {row[0]: replace(ProblemType(*row), exit=_EXITS.get(row[0], WRONG)) for row in rows}


PROBLEM_TYPES = _types(
    ("ExpressionParseError", "check", "An expression does not follow the grammar.", "APPEND_004"),
    (
        "ColumnNotFound",
        "check",
        "A column does not exist, or several tables have a column of that name.",
        "APPEND_006",
    ),
    ("UnknownSelector", "check", "`{{NAME}}` names a selector the project does not define."),
    ("SelectorCycle", "check", "Named selectors use each other in a circle."),
    ("UnknownFunction", "check", "No function has that name."),
    (
        "InvalidAggregation",
        "check",
        "An aggregation has no aggregate function, an unknown one, nested ones, or a column that is neither "
        "grouped nor aggregated.",
        "APPEND_005",
    ),
    ("AggregateMisplaced", "check", "An aggregate function is used where it is not allowed, such as in a selector."),
    ("TypeMismatch", "check", "A value has another type than its column, argument or key needs."),
    ("InvalidSelector", "check", "A selector or join condition is blank, or its value is not true or false."),
    ("EmptyAssignments", "check", "An update assigns nothing."),
    ("InvalidColumnName", "check", "A column name is not an identifier."),
    ("DuplicateColumn", "check", "The same column, table or alias is named twice."),
    ("SystemColumn", "check", "An operation sets, or a dataset declares, a system column."),
    ("EmptyGroupBy", "check", "An aggregation groups by nothing."),
    ("EmptyAggregations", "check", "An aggregation computes nothing."),
    ("DuplicateSeq", "check", "Two operations of a project have the same seq."),
    ("InvalidSeq", "check", "A seq is not a positive whole number."),
    ("InvalidArguments", "check", "A key is missing, or a value is not allowed."),
    ("DatasetNotFound", "check", "No dataset has that id.", "APPEND_001"),
    ("DatasetVersionNotFound", "check", "The dataset has no such version.", "APPEND_002"),
    ("DatasetDisabled", "check", "The dataset is disabled."),
    (
        "ColumnMismatch",
        "check",
        "Rows to append have columns or types that the working dataset does not have.",
        "APPEND_003",
    ),
    (
        "ResolverNotFound",
        "check",
        "The resolver of a dataset is missing or disabled, or the dataset has none and there is no default one.",
        "APPEND_007",
    ),
    ("DataSourceNotFound", "check", "No datasource has that id, or it is disabled."),
    ("CalendarNotFound", "check", "No calendar has that id, or a level is not one of its levels."),
    ("UnknownToken", "check", "A path or table template uses a `{{token}}` that does not exist."),
    (
        "InvalidDestination",
        "check",
        "A destination is not exactly one of table and location, may not be written, or is registered and not Delta.",
    ),
    ("InvalidSchema", "check", "An output that is registered as a dataset has system columns only."),
    ("ColumnProjectionError", "check", "An output names a column the working dataset does not have."),
    ("InvalidDatasetName", "check", "`register_as_dataset` is not a usable name."),
    ("DuplicateId", "check", "Two documents of one kind have the same id."),
    ("UnknownKey", "check", "A key is not allowed where it is written."),
    ("InvalidYaml", "check", "A file is not valid YAML 1.2."),
    ("ProjectNotFound", "check", "No project has that id."),
    ("SecretInYaml", "check", "A password, token or key is written in a file."),
    ("CredentialNotFound", "run", "A reference to a secret names a variable or file that is missing or empty."),
    ("DataLoadError", "run", "A value in the data does not fit its declared column.", "APPEND_008"),
    ("DataNotFound", "run", "The file, folder or table that a resolver names does not exist."),
    ("NoRuleMatched", "run", "No rule of the resolver matches the table and period."),
    ("SchemaMismatch", "run", "The data lacks a declared column, or the column has another type."),
    ("JoinNotUnique", "run", "A selected row has more than one match in a join or lookup."),
    ("AllocationFailed", "run", "A row to allocate has no target, or a driver is NULL, negative or zero everywhere."),
    ("CheckFailed", "run", "A check of the project failed, or the input has fewer rows than `min_rows`."),
    ("EvaluationError", "run", "An expression failed on a row: an overflow, or text that is not a number or date."),
    ("WriteFailed", "run", "An output could not be written."),
    ("PeriodNotFound", "run", "The calendar has no such period."),
    ("PeriodNotOpen", "run", "The period is closed or locked."),
    (
        "ProjectNotRunnable",
        "run",
        "The project is inactive, in conflict or edited, or it changed during the run.",
    ),
    ("ConcurrentRun", "run", "Another run of the same project or period is under way."),
    ("AlreadyAppended", "run", "An earlier run of the same project and period has appended its rows, or may have."),
    (
        "RunSuperseded",
        "run",
        "The run may no longer write: it was declared dead, or a later run of its project and period replaced it.",
    ),
    ("RunNotFound", "run", "No run has that id, or the ids of several begin with it."),
    (
        "RunNotRepeatable",
        "run",
        "The run cannot be retried or replayed: it has no snapshot, its input changed, or it is not completed.",
    ),
    ("SparkFailed", "run", "Processes of Spark were ended, or ran out of memory."),
    ("InternalError", "run", "A bug of Tallybook, or a Spark failure that is not about the data."),
)


@dataclass(frozen=True)
class BadValue:
    """A value in the data that does not fit its column, or a row that cannot be read."""

    file: str
    """The file, or the table."""
    row: int | None
    """The number of the row in the file, from 1, if it is known."""
    column: str | None
    """The name of the column in the data; None if the whole row cannot be read."""
    value: str | None
    """The value as it is in the data, None for NULL; the beginning of a long one."""
    expected: str
    """The type of the column."""
    cell: str | None = None
    """The address of a cell in a sheet, such as `Sheet1!C14`."""

    @property
    def where(self) -> str:
        """The file and the row or cell."""
        if self.cell is not None:
            return f"{self.file} {self.cell}"
        return self.file if self.row is None else f"{self.file} row {self.row}"

    @property
    def shown(self) -> str:
        return "NULL" if self.value is None else f"'{self.value}'"

    def __str__(self) -> str:
        if self.column is None:
            return f"{self.where}: the row {self.shown} cannot be read"
        return f"{self.where}: column '{self.column}' is {self.expected} and cannot hold {self.shown}"


IN_MESSAGE = 5
"""The most bad values of one column that a message contains; more are listed below it."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and everything a user needs to find and correct it."""

    type: str
    message: str
    hint: str | None = None
    place: Place | None = None
    path: str | None = None
    """Where inside the document: `project.operations[2].arguments.assignments[0].expression`."""
    project: str | None = None
    seq: int | None = None
    operation: str | None = None
    code: str | None = None
    via: Place | None = None
    """Where the named selector is used, if the problem is inside one."""
    subject: str | None = None
    """The id of what is missing. It is not shown; a caller that knows more about it can add a hint."""
    cause: ExitCode | None = None
    """The exit code, if it is another one than that of the type. It is not shown."""

    @property
    def exit(self) -> ExitCode:
        """The exit code of a command that this problem ends."""
        return self.cause or PROBLEM_TYPES[self.type].exit

    bad_values: tuple[BadValue, ...] = ()
    """The values in the data that are wrong."""

    def __post_init__(self) -> None:
        if self.type not in PROBLEM_TYPES:
            raise ValueError(f"unknown problem type {self.type!r}")

    def within(self, **details: object) -> Problem:
        """Returns the problem with these details added, except those it already has."""
        missing = {name: value for name, value in details.items() if getattr(self, name) is None}
        return replace(self, **missing)  # type: ignore[arg-type]  # names are checked by dataclasses.replace

    def to_json(self) -> dict[str, object]:
        """Returns the documented JSON form. Unknown values are left out, except those of `always`, which are null."""
        place = self.place
        values = {
            "type": self.type,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "project": self.project,
            "seq": self.seq,
            "operation": self.operation,
            "path": self.path,
            "bad_values": [asdict(value) for value in self.bad_values] or None,
        }
        always = ("type", "message", "file", "line", "column", "path")
        return {key: value for key, value in values.items() if value is not None or key in always}

    def lines(self, room: int = 124) -> Iterator[Line]:
        """Yields what a user reads: place and type, message, the source line with its caret, hint. The source line is
        cut to the room."""
        where = [f"project '{self.project}'"] if self.project else []
        if self.seq is not None or self.operation is not None:
            words = ("operation", self.seq, None if self.operation is None else f"'{self.operation}'")
            where.append(" ".join(str(word) for word in words if word is not None))
        code = f" [{self.code}]" if self.code else ""
        yield (
            f"{self.place}: " if self.place else "",
            Marked(self.type, "type"),
            code + (f" in {', '.join(where)}" if where else ""),
        )
        yield (f"  {self.message}",)
        if len(self.bad_values) > IN_MESSAGE or len({value.column for value in self.bad_values}) > 1:
            yield from ((f"    {value}",) for value in self.bad_values)
        source, _, caret = (self.place.excerpt(room - 4) if self.place else "").partition("\n")
        if source:
            yield (f"    {source}",)
            yield ("    ", Marked(caret, "caret"))
        if self.via:
            yield (f"  used at {self.via}",)
        if self.hint:
            yield ("  ", Marked("hint:", "hint"), f" {self.hint}")

    def __str__(self) -> str:
        """Returns the lines without styles. A newline in a message is shown as an escape, so it cannot fake a line."""
        return "\n".join(map(unstyled, self.lines()))


class TallybookError(Exception):
    """Base of all errors raised on purpose."""

    exit: ExitCode = WRONG
    """How a command ends that this error reaches."""

    def __init__(self, message: str, hint: str | None = None, *, exit: ExitCode | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  hint: {hint}")
        self.message = message
        self.hint = hint
        self.exit = exit or type(self).exit


class UsageError(TallybookError):
    """The command line, or a call of the library, is wrong."""

    exit = USAGE


class Terminated(SystemExit):
    """SIGTERM asked the process to end."""

    def __init__(self) -> None:
        super().__init__(TERMINATED.code)


class SessionError(TallybookError):
    """There is no usable Spark session or Java."""


class StoreError(TallybookError):
    """The metadata store cannot be opened, or refuses a change."""


class ProblemError(TallybookError):
    """The user's project, data or test is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        exit = common_exit(problem.exit for problem in self.problems) if self.problems else WRONG
        super().__init__("\n\n".join(str(problem) for problem in self.problems), exit=exit)

    @property
    def problem(self) -> Problem:
        """The first problem. A failed run has only one."""
        return self.problems[0]


class ValidationError(ProblemError):
    """The checker found problems before anything ran."""


class RunError(ProblemError):
    """A run failed. `run_id` and `log` are set where they are known."""

    def __init__(self, problems: Iterable[Problem], *, run_id: str | None = None, log: str | None = None) -> None:
        super().__init__(problems)
        self.run_id = run_id
        self.log = log


def exit_of(error: BaseException | None) -> ExitCode:
    """Returns how a command ends that an error reaches; None is no error."""
    match error:
        case None:
            return FINE
        case TallybookError():
            return error.exit
        case Terminated():
            return TERMINATED
        case KeyboardInterrupt():
            return INTERRUPTED
    return BUG


def fail(type: str, message: str, **details: object) -> RunError:
    """Returns the error for one run-time problem: `raise fail("DataNotFound", "...", hint="...")`."""
    return RunError([Problem(type, message, **details)])  # type: ignore[arg-type]  # checked by Problem


def report_bug(error: Exception) -> tuple[str, str]:
    """Writes the traceback of an unexpected error to a file. Returns a message for the user, and the file's path."""
    handle, log = tempfile.mkstemp(prefix="tallybook-bug-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("".join(traceback.format_exception(error)))
    first_line = shortened(str(error).strip().partition("\n")[0], 500)
    return f"this is a bug of Tallybook: {type(error).__name__}: {first_line}", log


_LONGEST_NAME = 200
"""The longest name that is suggested: comparing longer texts would take minutes."""


def did_you_mean(name: str, choices: Iterable[str], *, near_only: bool = False, similarity: float = 0.6) -> str | None:
    """Returns a hint that names the most similar choice; without one, all choices if they are few, except system
    columns."""
    names = sorted(choice for choice in set(choices) if len(choice) <= _LONGEST_NAME)
    by_lower = {choice.lower(): choice for choice in names}
    near = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), by_lower, n=1, cutoff=similarity)
    if near:
        return f"did you mean '{by_lower[near[0]]}'?"
    longer = [choice for choice in names if name and name.lower() in choice.lower().split("_")]
    if len(longer) == 1:
        return f"did you mean '{longer[0]}'?"
    listed = [f"'{choice}'" if "," in choice else choice for choice in names if not choice.startswith("_")]
    return "one of: " + ", ".join(listed) if 0 < len(listed) <= 12 and not near_only else None
