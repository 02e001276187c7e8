"""The document of `test`: the results of scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tallybook.documents.base import Document, IfKnown, json_value
from tallybook.documents.problems import ProblemDocument, listed
from tallybook.model.written import plain

if TYPE_CHECKING:
    from tallybook.scenarios.compare import CellDifference, Difference, RowDifference
    from tallybook.scenarios.suite import Outcome

Values = dict[str, Any]
"""The values of a row, by column. Numbers are text where JSON would lose digits."""


class DifferentCell(Document):
    """A cell that is not as expected."""

    column: str
    """The name of the column."""
    expected: Any
    """The value the scenario expects."""
    actual: Any
    """The actual value."""
    seq: int | None
    """The number of the operation that last set it; null if the input has this value."""
    operation: str | None
    """The name of that operation."""

    @classmethod
    def of(cls, cell: CellDifference) -> DifferentCell:
        return cls(
            column=cell.column,
            expected=_value(cell.expected),
            actual=_value(cell.actual),
            seq=cell.writer.seq if cell.writer else None,
            operation=cell.writer.operation if cell.writer else None,
        )


class DifferentRow(Document):
    """A row that differs, is missing or was not expected."""

    line: int | None
    """The line of the expected row in the scenario's file; null for a row that was not expected."""
    expected: Values | None
    """The expected row; null for a row that was not expected."""
    actual: Values | None
    """The actual row; null if there is none."""
    cells: tuple[DifferentCell, ...]
    """The cells that differ."""

    @classmethod
    def of(cls, row: RowDifference) -> DifferentRow:
        return cls(
            line=row.place.line if row.place else None,
            expected=_values(row.expected),
            actual=_values(row.actual),
            cells=tuple(map(DifferentCell.of, row.cells)),
        )


class FailedExpectation(Document):
    """An expectation that does not hold."""

    of: str
    """What it is about, such as an output."""
    seq: int | None
    """The number of the output operation."""
    what: str
    """What differs: `rows`, `columns`, `row_count` or `error`."""
    message: str
    """The difference in a sentence."""


class RowsDiffer(FailedExpectation):
    """An expectation about rows that does not hold."""

    rows: tuple[DifferentRow, ...]
    """The rows that differ."""


class ValueDiffers(FailedExpectation):
    """An expectation about columns, a number of rows or an error that does not hold."""

    expected: Any
    """What the scenario expects."""
    actual: Any
    """The actual value."""


class ScenarioOutcome(Document):
    """The result of a scenario."""

    name: str
    """Its name."""
    file: str
    """Its file, relative to the workspace."""
    line: int
    """The line it begins at."""
    status: Literal["passed", "failed", "error"]
    """`failed` if an expectation does not hold, `error` if it could not be run."""
    seconds: float
    """The time it took."""
    problem: IfKnown[ProblemDocument] = None
    """The first problem, where there are any."""
    problems: IfKnown[tuple[ProblemDocument, ...]] = None
    """All problems, where there are any."""
    differences: IfKnown[tuple[RowsDiffer | ValueDiffers, ...]] = None
    """The expectations that do not hold, where there are any."""

    @classmethod
    def of(cls, outcome: Outcome) -> ScenarioOutcome:
        problems = listed(outcome.problems)
        return cls(
            name=outcome.case.name,
            file=outcome.case.file,
            line=outcome.case.part.place(key=True).line,
            status=outcome.status,
            seconds=round(outcome.seconds, 3),
            problem=problems[0] if problems else None,
            problems=problems or None,
            differences=tuple(map(_difference, outcome.differences)) or None,
        )


class TestReport(Document):
    """The results of all scenarios that were run."""

    __test__ = False  # pytest would take the class for a test

    scenarios: tuple[ScenarioOutcome, ...]
    """The scenarios, in their order."""
    passed: int
    """The number that passed."""
    failed: int
    """The number with an expectation that does not hold."""
    errors: int
    """The number that could not be run."""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> TestReport:
        statuses = [outcome.status for outcome in outcomes]
        return cls(
            scenarios=tuple(map(ScenarioOutcome.of, outcomes)),
            passed=statuses.count("passed"),
            failed=statuses.count("failed"),
            errors=statuses.count("error"),
        )


def _difference(difference: Difference) -> RowsDiffer | ValueDiffers:
    shared = {
        "of": difference.of,
        "seq": difference.seq,
        "what": difference.what,
        "message": difference.message,
    }
    if difference.rows:
        return RowsDiffer(**shared, rows=tuple(map(DifferentRow.of, difference.rows)))
    return ValueDiffers(**shared, expected=json_value(difference.expected), actual=json_value(difference.actual))


def _values(row: Mapping[str, object] | None) -> Values | None:
    return None if row is None else {name: _value(value) for name, value in row.items()}


def _value(value: object) -> Any:
    return json_value(plain(value))
