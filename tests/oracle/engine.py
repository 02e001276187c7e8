"""The engine's opinion: the same case on Spark, with as few jobs as there are results to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.failures import is_about_values
from tallybook.engine.frames import FrameTables
from tallybook.engine.plan import Calculation, Optimisations, RunContext
from tallybook.errors import RunError
from tallybook.expressions.compile import spark_type
from tallybook.expressions.parameters import parameter_values
from tallybook.model.columns import ColumnType
from tallybook.model.run import CheckResult
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import ProjectHead
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import parse_raised
from tallybook.storage.failure import SPARK_ERRORS

from .case import Case, TableRows
from .expressions import Row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARROW = {
    "string": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


ON = Optimisations()
_OPTIMISATIONS = [optimisation.name for optimisation in fields(Optimisations)]
WITHOUT = (
    *(replace(ON, **{name: False}) for name in _OPTIMISATIONS),
    Optimisations(**dict.fromkeys(_OPTIMISATIONS, False)),
)
"""Each optimisation switched off, and all of them."""


@dataclass(frozen=True)
class Computed:
    """Column names in order, and rows."""

    columns: Sequence[str]
    types: Mapping[str, str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Opinion:
    """What came of it: results, or why there are none. Outputs by seq, the final working dataset under 0."""

    results: Mapping[int, Computed]
    problems: Sequence[str] = ()
    """Types of the checker's problems."""
    failure: str | None = None
    """Type of the failure on some row."""
    checks: Mapping[int, CheckResult] = field(default_factory=dict)
    """What each check found, by seq."""


def bind(case: Case) -> BoundProject:
    project, datasets = case.entities
    head = ProjectHead(**project.model_dump(exclude={"operations"}))
    return bind_project(head, project.operations, DatasetVersions.of(datasets))


def computed(case: Case, spark: SparkSession, optimisations: Optimisations = ON) -> Opinion:
    bound = bind(case)
    if bound.problems:
        return Opinion({}, [problem.type for problem in bound.problems])
    values = parameter_values(bound.head.parameters, {})
    moment = case.timestamp
    context = RunContext("oracle", case.span, case.as_of, moment, int(moment.timestamp() * 1000), parameters=values)
    frames = {name: frame_of(table, spark) for name, table in case.tables.items()}
    sink = _Collecting()
    try:
        calculation = replace(Calculation.of(bound, context), optimisations=optimisations)
        tables = _KnownTables(frames, context, case) if optimisations.prepare_joins else FrameTables(frames, context)
        execute(spark, calculation, tables, sink)
    except _FailedError as failed:
        return Opinion({}, failure=_failure(failed.error))
    except RunError as error:  # Spark evaluates some constants while it plans
        problem = error.problem
        return Opinion({}, failure=problem.type if problem.type != "InternalError" else str(problem))
    return Opinion(sink.results, checks=sink.checks)


@dataclass(frozen=True)
class _KnownTables(FrameTables):
    """Tables of which the engine knows as much as it could of files: it treats some as small, so that it fetches them,
    and joins those with unique keys without a check."""

    case: Case

    def is_small(self, source: SourceTable) -> bool:
        return len(source.table.columns) % 2 == 0

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        if not source.table.business_types.keys() >= set(columns):
            return False
        rows = self.case.tables[source.dataset.id, source.table.name].rows
        keys = [tuple(row.get(column) for column in columns) for row in rows]
        matching = [key for key in keys if None not in key]
        return len(set(matching)) == len(matching)


class _FailedError(Exception):
    """A job that failed. The engine lets it through without looking for the operation to blame, which costs jobs."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _failure(error: Exception) -> str:
    raised = parse_raised(error)
    if raised is not None:
        return str(raised["type"])
    return "EvaluationError" if is_about_values(error) else f"InternalError: {str(error)[:600]}"


@dataclass
class _Collecting(Sink):
    needs_working: bool = True
    results: dict[int, Computed] = field(default_factory=dict)
    checks: dict[int, CheckResult] = field(default_factory=dict)

    def take_check(self, result: CheckResult) -> None:
        self.checks[result.seq] = result

    def publish(self, output: Publication, rows: DataFrame, _warn: Warn) -> None:
        self._collect(output.seq, rows)

    def take_working(self, working: DataFrame) -> None:
        self._collect(0, working)

    def _collect(self, seq: int, rows: DataFrame) -> None:
        try:
            self.results[seq] = collected(rows)
        except SPARK_ERRORS as error:
            raise _FailedError(error) from error


def frame_of(table: TableRows, spark: SparkSession) -> DataFrame:
    """The rows as a local relation, numbered in the order given."""
    columns = {
        name: pa.array([row[name] for row in table.rows], _arrow_type(type)) for name, type in table.types.items()
    }
    columns[POSITION] = pa.array(range(len(table.rows)), pa.int64())
    schema = T.StructType([T.StructField(name, spark_type(type)) for name, type in table.types.items()])
    return spark.createDataFrame(pa.table(columns), schema.add(POSITION, T.LongType()))


def _arrow_type(type: ColumnType) -> pa.DataType:
    return pa.decimal128(type.precision, type.scale) if type.kind == "decimal" else ARROW[type.kind]


def collected(frame: DataFrame) -> Computed:
    """All rows; moments as UTC whatever zone Python is in."""
    moments = [field.name for field in frame.schema if isinstance(field.dataType, T.TimestampType)]
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    readable = frame.select(
        *(F.unix_micros(f"`{n}`").alias(n) if n in moments else F.col(f"`{n}`") for n in frame.columns)
    )
    rows = [row.asDict() for row in readable.collect()]
    for row in rows:
        row |= {name: EPOCH + timedelta(microseconds=row[name]) for name in moments if row[name] is not None}
    return Computed(frame.columns, types, rows)
