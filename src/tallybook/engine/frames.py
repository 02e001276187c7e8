"""`apply_operations`: applies operations to DataFrames of the caller, in the caller's session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.engine.execute import working_rows
from tallybook.engine.plan import Calculation, RunContext
from tallybook.engine.session import check_session
from tallybook.errors import UsageError
from tallybook.expressions.compile import cast, column_named
from tallybook.expressions.parameters import ParameterValue, type_of_value
from tallybook.model.base import ID_PATTERN
from tallybook.model.columns import INTERNAL, PERIOD, RESERVED, ColumnDef, ColumnType, decimal, folded, system_column
from tallybook.model.dataset import Dataset, Table, TemporalMode
from tallybook.model.location import Location
from tallybook.model.parameter import Parameter
from tallybook.model.period import GREGORIAN, Calendar, Period
from tallybook.operations.base import Operation
from tallybook.operations.flow import publications
from tallybook.operations.registry import follow
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import AnyOperation, ProjectHead
from tallybook.rows.ids import POSITION
from tallybook.source import path_text


@cache
def _operations() -> TypeAdapter[tuple[Operation, ...]]:
    return TypeAdapter(tuple[AnyOperation, ...])


follow(_operations.cache_clear)


@dataclass(frozen=True)
class FrameTables:
    """Tables whose rows are DataFrames, by dataset id and table name."""

    frames: Mapping[tuple[str, str], DataFrame]
    context: RunContext

    def rows(self, source: SourceTable) -> DataFrame:
        frame = self.frames[source.dataset.id, source.table.name]
        return frame if POSITION in frame.columns else frame.withColumn(POSITION, F.monotonically_increasing_id())

    def periods(self, source: SourceTable) -> Sequence[str]:
        return [period.identifier for period in self.context.periods_of(source)]

    def is_small(self, _source: SourceTable) -> bool:
        return False

    def has_unique_keys(self, _source: SourceTable, _columns: Sequence[str]) -> bool:
        return False

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        return []


def apply_operations(
    frame: DataFrame,
    operations: Sequence[Operation | Mapping[str, Any]],
    *,
    period: str | Period,
    table: str = "rows",
    sources: Mapping[str, DataFrame] | None = None,
    selectors: Mapping[str, str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    as_of: date | None = None,
    timestamp: datetime | None = None,
    calendar: Calendar = GREGORIAN,
) -> DataFrame:
    """Returns the working dataset after the operations, with system columns. Nothing is written or computed yet.

    Expressions read the frame by the name `table`, and the `parameters` as `params.NAME`. Joins and appends name the
    frames of `sources` as datasets. A frame with a `_period` column is filtered to the period. Row ids are unique among
    the rows of one call.
    """
    check_session(frame.sparkSession)
    if table in (sources or {}):
        raise UsageError(
            f"'{table}' names the frame itself and cannot be a source", "give the source, or `table`, another name"
        )
    run_timestamp = timestamp or datetime.now(UTC)
    span = calendar.period(period) if isinstance(period, str) else period
    given = {table: frame, **(sources or {})}
    datasets = {name: dataset_of(name, given_frame) for name, given_frame in given.items()}
    values = dict(parameters or {})
    head = ProjectHead(
        id="apply",
        name="apply",
        input_dataset_id=table,
        selectors=dict(selectors or {}),
        parameters={name: _parameter(name, value) for name, value in values.items()},
    )
    bound = bind_project(head, _read(operations), DatasetVersions.of(datasets))
    epoch_ms = int(run_timestamp.timestamp() * 1000)
    context = RunContext("apply", span, as_of or span.start_date, run_timestamp, epoch_ms, values, calendar)
    calculation = Calculation.of(bound, context)
    if publications(calculation.steps):
        raise UsageError("operations on a frame cannot have an output", "write the frame that apply_operations returns")
    tables = FrameTables(
        {
            (name, datasets[name].main_table.name): conformed(given_frame, datasets[name])
            for name, given_frame in given.items()
        },
        context,
    )
    return working_rows(frame.sparkSession, calculation, tables)


def _parameter(name: str, value: ParameterValue) -> Parameter:
    try:
        return Parameter(type=type_of_value(value))
    except ValueError as error:
        raise UsageError(f"parameter '{name}': {error}") from None


def _read(operations: Sequence[Operation | Mapping[str, Any]]) -> tuple[Operation, ...]:
    bodies = [
        operation.model_dump(by_alias=True) if isinstance(operation, Operation) else dict(operation)
        for operation in operations
    ]
    try:
        return _operations().validate_python(bodies, strict=False)
    except PydanticError as error:
        first = error.errors()[0]
        raise UsageError(
            f"operation {path_text(first['loc'])}: {first['msg']}", "see docs/reference/operations.md"
        ) from error


def dataset_of(name: str, frame: DataFrame) -> Dataset:
    """Returns a dataset with the columns of a frame; its temporal mode is `period` if the frame has `_period`."""
    _check_names(name, frame.columns)
    columns = tuple(
        ColumnDef(name=field.name, type=column_type(field), nullable=field.nullable)
        for field in frame.schema.fields
        if field.name not in RESERVED and field.name != POSITION
    )
    if not re.fullmatch(ID_PATTERN, name):
        hint = "use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        raise UsageError(f"'{name}' cannot be the name of a frame", hint)
    if not columns:
        raise UsageError(f"frame '{name}' has no columns except system columns", "give it at least one other column")
    mode: TemporalMode = "period" if PERIOD in frame.columns else "none"
    return Dataset(id=name, name=name, main_table=Table(name=name, temporal_mode=mode, columns=columns))


def _check_names(frame: str, names: Sequence[str]) -> None:
    """Raises UsageError if two names differ by case only, or are the same: Spark ignores case by default."""
    seen: dict[str, str] = {}
    for name in names:
        twin, system = seen.get(folded(name)), system_column(name)
        if folded(name).startswith(INTERNAL) and name != POSITION:
            raise UsageError(f"column '{name}' of frame '{frame}' has a name that only Tallybook uses", "rename it")
        if twin is not None:
            what = f"the column '{name}' twice" if twin == name else f"the columns '{twin}' and '{name}'"
            raise UsageError(f"frame '{frame}' has {what}", "rename or drop one of them")
        if system not in (None, name):
            raise UsageError(
                f"column '{name}' of frame '{frame}' differs from the system column '{system}' by case only",
                f"rename it to '{system}' if that is what it holds, else to something else",
            )
        seen[folded(name)] = name


def column_type(field: T.StructField) -> ColumnType:
    """Returns the type of a Spark column. Raises UsageError for a type that Tallybook does not have, such as double."""
    type = field.dataType
    if isinstance(type, T.DecimalType):
        return decimal(type.precision, type.scale)
    if isinstance(type, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return ColumnType("integer")
    simple = {T.StringType: "string", T.BooleanType: "boolean", T.DateType: "date", T.TimestampType: "timestamp"}
    kind = simple.get(type.__class__)
    if kind is None:
        hint = "cast it to a decimal first" if isinstance(type, T.FractionalType) else "drop it or cast it first"
        raise UsageError(f"column '{field.name}' is {type.simpleString()}, a type that Tallybook does not have", hint)
    return ColumnType(kind)


def conformed(frame: DataFrame, dataset: Dataset) -> DataFrame:
    """Casts the business columns of a frame to the types of the dataset. System columns stay as they are."""
    types = dataset.main_table.business_types

    def column(name: str) -> Column:
        own = column_named(name)
        return cast(own, types[name]).alias(name) if name in types else own

    return frame.select(*(column(name) for name in frame.columns))
