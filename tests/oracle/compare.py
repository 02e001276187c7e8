"""Do both agree? Cell by cell, rows as a multiset; only the text of a new `_row_id` is the engine's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal

from pyspark.sql import SparkSession

from tallybook.engine.plan import Optimisations
from tallybook.model.columns import ColumnType

from .case import Case
from .engine import ON, Computed, Opinion, computed
from .expressions import Row
from .project import Result
from .readings import Reading
from .tables import NEW_ID
from .values import FailedError, RefusedError

WIDE = Context(prec=100)
FAILURES = ("EvaluationError", "JoinNotUnique", "CheckFailed", "AllocationFailed")
"""Either will do when several rows fail."""
UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Verdict:
    """How a case ended, and in which ways the two opinions differ."""

    outcome: str
    """`rows`, `refused` or `failed`, by the oracle."""
    differences: Sequence[str]


def judged(case: Case, spark: SparkSession, optimisations: Optimisations = ON) -> Verdict:
    """Both opinions on a case."""
    opinion = computed(case, spark, optimisations)
    try:
        result = case.interpreted()
    except RefusedError as error:
        agree = str(error) in opinion.problems
        return Verdict("refused", [] if agree else [f"oracle refuses with {error}; engine: {_summary(opinion)}"])
    except FailedError as error:
        return Verdict("failed", [] if opinion.failure in FAILURES else _lazily(case, opinion, error))
    if opinion.failure == "EvaluationError" and _fails_eagerly(case):
        return Verdict("rows", [])
    if opinion.problems or opinion.failure:
        return Verdict("rows", [f"oracle has rows; engine: {_summary(opinion)}"])
    return Verdict("rows", _differences(result, opinion))


def _fails_eagerly(case: Case) -> bool:
    """The engine fails though no row does: right only if an expression fails that needs no row."""
    try:
        case.interpreted(Reading.EAGER)
    except FailedError:
        return True
    return False


def _lazily(case: Case, opinion: Opinion, error: FailedError) -> list[str]:
    """The engine has rows though an expression fails: right only if its value did not matter."""
    try:
        result = case.interpreted(Reading.LAZY)
    except FailedError:
        return [f"oracle fails with {error}; engine: {_summary(opinion)}"]
    return _differences(result, opinion) if opinion.results else [f"oracle has rows; engine: {_summary(opinion)}"]


def _summary(opinion: Opinion) -> str:
    if opinion.problems:
        return f"refuses with {', '.join(opinion.problems)}"
    return f"fails with {opinion.failure}" if opinion.failure else "has rows"


def _differences(result: Result, opinion: Opinion) -> list[str]:
    working = result.working
    expected: dict[int, tuple[list[str], Sequence[Row]]] = {0: (list(working.columns), working.rows), **result.outputs}
    found = [
        f"check {seq}: {tested.failed} of {tested.tested} failed; engine: {ours.failed} of {ours.tested}"
        for seq, tested in result.checks.items()
        if (tested.tested, tested.failed) != ((ours := opinion.checks[seq]).tested, ours.failed)
    ]
    for seq, (columns, rows) in expected.items():
        where = f"output {seq}" if seq else "working dataset"
        got = opinion.results[seq]
        types = {name: spark_name(working.columns[name]) for name in columns if name in working.columns}
        found += [f"{where}: {text}" for text in _table_differences(columns, types, rows, got)]
    return found


def spark_name(type: ColumnType) -> str:
    return {"integer": "bigint"}.get(type.kind, str(type))


def _table_differences(columns: list[str], types: Mapping[str, str], rows: Sequence[Row], got: Computed) -> list[str]:
    if list(got.columns) != columns:
        return [f"columns are {list(got.columns)}, not {columns}"]
    wrong = [f"{n} is {got.types[n]}, not {type}" for n, type in types.items() if got.types[n] != type]
    ids = [row["_row_id"] for row in got.rows] if "_row_id" in columns else []
    if len(set(ids)) < len(ids):
        wrong.append("row ids are not unique")
    wrong += [f"{each} is no UUIDv7" for each in ids if not UUID7.fullmatch(str(each))]
    kept = {row["_row_id"] for row in rows if "_row_id" in row} - {NEW_ID}
    ours = Counter(_shown(row, columns, kept) for row in rows)
    theirs = Counter(_shown(row, columns, kept) for row in got.rows)
    wrong += [f"oracle alone has {dict(zip(columns, row, strict=True))}" for row in (ours - theirs).elements()]
    wrong += [f"engine alone has {dict(zip(columns, row, strict=True))}" for row in (theirs - ours).elements()]
    return wrong


def _shown(row: Row, columns: Sequence[str], kept: set[object]) -> tuple[str, ...]:
    shown = {name: _cell(row[name]) for name in columns}
    if "_row_id" in shown and row["_row_id"] not in kept:
        shown["_row_id"] = NEW_ID
    return tuple(shown[name] for name in columns)


def _cell(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value.normalize(WIDE) if value else abs(value), "f")
    return value.isoformat() if isinstance(value, date) else repr(value)
