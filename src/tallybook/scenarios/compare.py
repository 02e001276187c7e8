"""Compares results with expectations: rows as multisets, each difference with the nearest row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallybook.errors import Problem
from tallybook.model.columns import OPERATION_SEQ, ColumnType
from tallybook.model.run import CheckResult
from tallybook.operations.base import Step
from tallybook.operations.flow import Writer, last_writer
from tallybook.scenarios.load import Case
from tallybook.scenarios.model import ExpectedCheck, ExpectedError, ExpectedRows
from tallybook.scenarios.pairing import pair
from tallybook.scenarios.run import Actual, Captured
from tallybook.scenarios.values import read_value, same
from tallybook.source import Place

Values = Mapping[str, object]


@dataclass(frozen=True)
class CellDifference:
    """A cell that differs from the expected value, and the last operation that could have set it."""

    column: str
    expected: object
    actual: object
    writer: Writer | None


@dataclass(frozen=True)
class RowDifference:
    """A row that differs (both sides), is missing (no actual) or is not expected (no expected)."""

    expected: Values | None
    actual: Values | None
    cells: tuple[CellDifference, ...] = ()
    place: Place | None = None
    """The position of the expected row."""


@dataclass(frozen=True)
class Difference:
    """An expectation that does not hold. `rows` is set if it is about rows."""

    of: str
    seq: int | None
    what: str
    message: str
    expected: object = None
    actual: object = None
    rows: tuple[RowDifference, ...] = ()


def compare(case: Case, actual: Actual) -> list[Difference]:
    """Returns every expectation of a scenario that does not hold."""
    expect = case.body.expect
    assert expect is not None
    differences = list(_compare_columns(expect.columns, actual.result))
    differences += _compare_rows(case, expect, actual.result, ("expect",))
    for seq, expected in expect.outputs.items():
        differences += _compare_rows(case, expected, actual.outputs[int(seq)], ("expect", "outputs", seq))
    for seq, wanted in expect.checks.items():
        differences += _compare_check(wanted, actual.checks[int(seq)])
    if expect.working is not None:
        assert actual.working is not None, "the working dataset is computed if something is expected of it"
        differences += _compare_rows(case, expect.working, actual.working, ("expect", "working"))
    return differences


def _compare_check(expected: ExpectedCheck, result: CheckResult) -> Iterator[Difference]:
    title = f"check {result.seq} '{result.name}'"
    for what, wanted, count in (
        ("tested", expected.tested, result.tested),
        ("failed", expected.failed, result.failed),
    ):
        if wanted is not None and wanted != count:
            shown = f": {result.shown_examples}" if what == "failed" and count else ""
            message = f"{title}: {count} {what}, but the scenario expects {wanted}{shown}"
            yield Difference(title, result.seq, what, message, wanted, count)


def compare_error(expected: ExpectedError, problems: Sequence[Problem]) -> list[Difference]:
    """Returns a difference if none of the problems is the expected one. Without problems the project has completed."""
    if any(p.type == expected.type and expected.seq in (None, p.seq) for p in problems):
        return []
    wanted = f"{expected.type}" + (f" in operation {expected.seq}" if expected.seq is not None else "")
    met = ", ".join(f"{p.type}" + (f" in operation {p.seq}" if p.seq is not None else "") for p in problems)
    message = f"the scenario expects {wanted}, but {f'got {met}' if met else 'nothing failed'}"
    return [Difference("the project", expected.seq, "error", message, wanted, met or None)]


def _compare_columns(expected: Sequence[str] | None, captured: Captured) -> Iterator[Difference]:
    actual = list(captured.columns)
    if expected is not None and list(expected) != actual:
        message = (
            f"{captured.title} has the columns {', '.join(actual)}, but the scenario expects {', '.join(expected)}"
        )
        yield Difference(captured.title, captured.seq, "columns", message, list(expected), actual)


def _compare_rows(
    case: Case, expected: ExpectedRows, captured: Captured, path: tuple[str, ...]
) -> Iterator[Difference]:
    title, seq, count = captured.title, captured.seq, len(captured.rows)
    if expected.row_count is not None and expected.row_count != count:
        message = f"{title} has {_rows(count)}, but the scenario expects {expected.row_count}"
        yield Difference(title, seq, "row_count", message, expected.row_count, count)
    if expected.rows is None:
        return
    wanted = [_typed(row, captured.columns) for row in expected.rows]
    pairs, spare = pair(wanted, captured.rows, _keys(case))
    assert case.bound is not None
    rows = [
        _differing(
            wanted[i],
            None if j is None else captured.rows[j],
            captured.seq,
            case.bound.steps,
            case.part.place((*path, "rows", i)),
        )
        for i, j in pairs
    ]
    if expected.match == "exact":
        rows += [RowDifference(None, captured.rows[j]) for j in spare]
    if rows:
        yield Difference(title, seq, "rows", f"{title}: {_summary(rows, len(wanted))}", rows=tuple(rows))


def _typed(row: Values, columns: Mapping[str, ColumnType]) -> dict[str, object]:
    return {name: read_value(value, columns[name], exact=False) for name, value in row.items()}


def _keys(case: Case) -> frozenset[str]:
    """Returns the columns by which people identify rows."""
    source = case.bound.input if case.bound else None
    return frozenset(source.dataset.natural_key_columns if source else ())


def _differing(
    expected: Values, actual: Values | None, output: int | None, steps: Sequence[Step], place: Place
) -> RowDifference:
    """Compares an expected row with its nearest actual row."""
    if actual is None:
        return RowDifference(expected, None, place=place)
    made_by = actual.get(OPERATION_SEQ)
    origin = made_by if isinstance(made_by, int) else 0
    cells = tuple(
        CellDifference(name, value, actual[name], last_writer(steps, name, origin, output))
        for name, value in expected.items()
        if not same(value, actual[name])
    )
    return RowDifference(expected, actual, cells, place)


def _summary(rows: Sequence[RowDifference], expected: int) -> str:
    differ = sum(1 for row in rows if row.expected is not None and row.actual is not None)
    missing = sum(1 for row in rows if row.actual is None)
    spare = sum(1 for row in rows if row.expected is None)
    said = [f"{differ} of {_rows(expected)} differ" + ("s" if differ == 1 else "")] if differ else []
    said += [f"{_rows(missing)} missing"] if missing else []
    said += [f"{_rows(spare)} not expected"] if spare else []
    return ", ".join(said)


def _rows(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"
