"""What the product reads at the location of a case, and how that differs from what the strict reader says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import Problem, RunError
from tallybook.model.columns import ColumnDef, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import parse_raised
from tallybook.storage import diagnose, read
from tallybook.storage.diagnose import failed_read
from tallybook.storage.failure import SPARK_ERRORS

from .case import Case
from .strict_json import Nested
from .strict_location import SYSTEM, strict
from .verdict import NOTHING, MalformedError, Row, StrictReading

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REFUSALS = ("DataLoadError", "SchemaMismatch", NOTHING)
"""The types of the problems with which a location may be refused."""
SPARK_TYPES = {"integer": "bigint", "decimal": "decimal(18,6)"}
"""The types of columns that Spark names otherwise."""


@dataclass(frozen=True)
class ProductReading:
    """Rows in the order of their positions, or the problem that the product reports."""

    rows: Sequence[Row] = ()
    types: tuple[tuple[str, str], ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True)
class Judgement:
    """The differences of two readings; `refused` has the reason for which the strict reader refuses the location."""

    refused: str | None
    differences: Sequence[str] = ()


def judge(case: Case, spark: SparkSession, root: Path) -> Judgement:
    """Reads a case, which is written below `root`, with both readers."""
    target = case.write(root)
    expected: StrictReading | MalformedError
    try:
        expected = strict(case, root)
    except MalformedError as error:
        expected = error
    got = product_read(case, spark, target)
    refused = expected.reason if isinstance(expected, MalformedError) else None
    return Judgement(refused, differences(case, expected, got))


def product_read(case: Case, spark: SparkSession, target: Path) -> ProductReading:
    """The product's rows, or its problem; any other failure counts as an InternalError."""
    location = location_of(case, target)
    table = _table_of(case)
    try:
        return _collected(read(spark, location, table), case.asked)
    except RunError as error:
        return ProductReading(problem=error.problem)
    except SPARK_ERRORS as error:
        raised = parse_raised(error)
        if raised is not None:
            return ProductReading(problem=diagnose(spark, raised, [(location, table)]))
        damage = failed_read(error, [location])
        return ProductReading(problem=damage[0] if damage else Problem("InternalError", str(error)[:1000]))


def location_of(case: Case, target: Path) -> Location:
    source = FileSource(id="files", type=case.format, options=FileOptions(path_prefix="/", **case.options))
    return Location(source, str(target))


def _table_of(case: Case) -> Table:
    columns = tuple(
        ColumnDef(name=c.name, type=ColumnType.parse(c.type), nullable=c.nullable, source=c.physical)
        for c in case.columns
    )
    return Table(name="rows", columns=columns)


def _collected(frame: DataFrame, asked: Sequence[str] | None) -> ProductReading:
    if asked == ():
        return ProductReading([{POSITION: number} for number in range(frame.count())])
    if asked is not None:
        frame = frame.select(*asked, POSITION)
    moments = [field.name for field in frame.schema if isinstance(field.dataType, T.TimestampType)]
    # Apart from Python's time zone. Connect refuses an empty mapping.
    plain = frame.withColumns({name: F.unix_micros(name) for name in moments}) if moments else frame
    rows = sorted((row.asDict() for row in plain.collect()), key=lambda row: row[POSITION])
    for row in rows:
        row |= {name: EPOCH + timedelta(microseconds=row[name]) for name in moments if row[name] is not None}
    return ProductReading(rows, tuple((field.name, field.dataType.simpleString()) for field in frame.schema))


def differences(case: Case, expected: StrictReading | MalformedError, got: ProductReading) -> list[str]:
    """How the product's reading differs from the strict one, in words."""
    if got.problem is None:
        if isinstance(expected, MalformedError):
            return [f"the product has rows: {_shown(got.rows)}; but there is {expected}"]
        return [*_type_differences(case, got), *row_differences(expected, got)]
    said = f"{got.problem.type}: {got.problem.message}"
    if got.problem.type not in REFUSALS:
        return [f"the product fails with {said}"]
    if isinstance(expected, StrictReading):
        return [f"the product refuses {len(expected.rows)} good rows with {said}"]
    if (got.problem.type == NOTHING) != (expected.type == NOTHING):
        return [f"the product refuses with {said}; but there is {expected}"]
    return []


def _type_differences(case: Case, got: ProductReading) -> list[str]:
    declared = {column.name: column.type for column in case.columns}
    wanted = {name: SPARK_TYPES.get(type, type) for name, type in {**SYSTEM, **declared, POSITION: "integer"}.items()}
    wrong = [f"{name} is {type}" for name, type in got.types if wanted.get(name) != type]
    missing = set(declared if case.asked is None else case.asked) - {name for name, _ in got.types}
    return wrong + [f"{name} is missing" for name in sorted(missing)]


def row_differences(expected: StrictReading, got: ProductReading) -> list[str]:
    """Differences between rows: in their order if it is known, else as bags."""
    positions = [row[POSITION] for row in got.rows]
    wrong = ["positions are not unique"] if len(set(positions)) < len(positions) else []
    columns = sorted({name for name, _ in got.types} - {POSITION} | expected.columns)
    ours = [[row.get(name) for name in columns] for row in expected.rows]
    theirs = [[row.get(name) for name in columns] for row in got.rows]
    if expected.ordered:
        same = len(ours) == len(theirs) and all(map(_same, ours, theirs))
        return wrong + ([] if same else [f"rows are {_shown(theirs)}, not {_shown(ours)}"])
    for row in theirs:
        match = next((index for index, other in enumerate(ours) if _same(other, row)), None)
        if match is None:
            wrong.append(f"only the product has {row}")
        else:
            del ours[match]
    return wrong + [f"only the strict reader has {row}" for row in ours]


def _same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return all(a == b and (type(a) is type(b) or isinstance(a, Nested)) for a, b in zip(ours, theirs, strict=True))


def _shown(rows: Sequence[Any]) -> str:
    return f"{list(rows)[:10]}{' and more' if len(rows) > 10 else ''}"
