"""Evaluates projects over few rows that this process has in memory, for scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.engine.collect import Values, collected
from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.keeper import Keeper
from tallybook.engine.plan import Calculation, RunContext
from tallybook.errors import RunError, fail
from tallybook.expressions.compile import spark_type
from tallybook.model.columns import INTEGER, PERIOD, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.model.run import CheckResult
from tallybook.operations.flow import source_tables
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import BoundProject
from tallybook.rows.ids import POSITION
from tallybook.storage.read import read_all

Key = tuple[str, str]
"""A dataset's id and a table's name."""

_HELD_ROWS = 10_000
"""Files with at most this many rows are read once and kept in memory."""


@dataclass(frozen=True)
class GivenRows:
    """Rows in memory, in their order."""

    columns: Mapping[str, ColumnType]
    rows: Sequence[Values]


@dataclass(frozen=True)
class LocalTables:
    """Tables whose rows are in memory or in files."""

    engine: LocalEngine
    given: Mapping[Key, GivenRows | Location]
    within: Mapping[SourceTable, Sequence[str]]
    sources: Sequence[SourceTable]

    def rows(self, source: SourceTable) -> DataFrame:
        given = self.given.get(_key(source))
        if given is None:
            raise fail("DataNotFound", f"no rows are given for {source}")
        if isinstance(given, Location):
            return self.engine.held(given, source.table).frame
        numbered = [(*row, position) for position, row in enumerate(given.rows)]
        return local_frame(self.engine.spark, {**given.columns, POSITION: INTEGER}, numbered)

    def periods(self, source: SourceTable) -> Sequence[str]:
        return self.within[source]

    def is_small(self, source: SourceTable) -> bool:
        """False: the rows are in memory already, so there is nothing to fetch."""
        return False

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        given = self.given.get(_key(source))
        if isinstance(given, Location):
            given = self.engine.held(given, source.table).rows
        if given is None or not given.columns.keys() & source.table.business_types.keys() >= set(columns):
            return False
        rows = [dict(zip(given.columns, row, strict=True)) for row in given.rows]
        keys = [
            tuple(row[column] for column in columns)
            for row in rows
            if source.table.temporal_mode != "period" or row.get(PERIOD) in self.within[source]
        ]
        matching = [key for key in keys if None not in key]
        return len(set(matching)) == len(matching)

    @property
    def reads(self) -> Sequence[tuple[Location, SourceTable]]:
        given = ((self.given.get(_key(source)), source) for source in self.sources)
        return [(rows, source) for rows, source in given if isinstance(rows, Location)]


def _key(source: SourceTable) -> Key:
    return source.dataset.id, source.table.name


@dataclass(frozen=True)
class Evaluated:
    """The rows of each output and of the final working dataset, and the results of checks."""

    outputs: Mapping[int, Sequence[Values]]
    working: Sequence[Values]
    checks: Sequence[CheckResult] = ()


@dataclass(frozen=True)
class HeldFile:
    """The rows of a file, as a frame, and in memory if they are few."""

    frame: DataFrame
    rows: GivenRows | None = None


@dataclass
class LocalEngine:
    """Evaluates projects over few rows, one after the other or from several threads, in one session."""

    spark: SparkSession
    _held: dict[tuple[str, str | None, Table], HeldFile] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def evaluate(
        self,
        bound: BoundProject,
        context: RunContext,
        given: Mapping[Key, GivenRows | Location],
        within: Mapping[SourceTable, Sequence[str]],
        *,
        needs_working: bool = True,
    ) -> Evaluated:
        """Returns the results of a checked project; no working rows if they are not needed. Writes nothing. Raises
        RunError if the project fails."""
        calculation = Calculation.of(bound, context)
        tables = LocalTables(self, given, within, source_tables(calculation.input, calculation.steps))
        capture = _Capture(needs_working)
        try:
            execute(self.spark, calculation, tables, capture, keeper=LocalKeeper(self.spark))
        except RunError as error:
            raise RunError(problem.within(project=bound.head.id) for problem in error.problems) from error
        return Evaluated(capture.outputs, capture.working, capture.checks)

    def held(self, location: Location, table: Table) -> HeldFile:
        """Returns the rows of a file, which is read once."""
        key = (location.target, location.period, table)
        with self._lock:
            if key not in self._held:
                self._held[key] = self._read(location, table)
            return self._held[key]

    def _read(self, location: Location, table: Table) -> HeldFile:
        frame = read_all(self.spark, [location], table)
        rows = collected(frame.limit(_HELD_ROWS + 1))
        if len(rows) > _HELD_ROWS:
            return HeldFile(frame)
        types = table.business_types | table.system_types | {POSITION: INTEGER}
        columns = {name: types[name] for name in frame.columns}
        return HeldFile(local_frame(self.spark, columns, rows), GivenRows(columns, rows))


@dataclass
class _Capture(Sink):
    """Collects the rows of outputs, and of the final working dataset if it is needed."""

    needs_working: bool = True
    outputs: dict[int, Sequence[Values]] = field(default_factory=dict)
    working: Sequence[Values] = ()
    checks: list[CheckResult] = field(default_factory=list)

    def take_check(self, result: CheckResult) -> None:
        self.checks.append(result)

    def publish(self, output: Publication, rows: DataFrame, _warn: Warn) -> None:
        self.outputs[output.seq] = collected(rows)

    def take_working(self, working: DataFrame) -> None:
        self.working = collected(working)


@dataclass(frozen=True)
class LocalKeeper(Keeper):
    """Keeps rows in this process."""

    spark: SparkSession

    def keep(self, frame: DataFrame, columns: Mapping[str, ColumnType]) -> DataFrame:
        return local_frame(self.spark, columns, collected(frame))

    def cut(self, frame: DataFrame, columns: Mapping[str, ColumnType]) -> DataFrame:
        return self.keep(frame, columns)


_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def local_frame(spark: SparkSession, columns: Mapping[str, ColumnType], rows: Sequence[Values]) -> DataFrame:
    """Returns a frame with these rows."""
    arrays = [
        pa.array([_exact(row[index], type) for row in rows], type=_arrow_type(type))
        for index, type in enumerate(columns.values())
    ]
    schema = T.StructType([T.StructField(name, spark_type(type)) for name, type in columns.items()])
    return spark.createDataFrame(pa.table(arrays, names=list(columns)), schema)


def _arrow_type(type: ColumnType) -> pa.DataType:
    return pa.decimal128(type.precision, type.scale) if type.kind == "decimal" else _ARROW[type.kind]


def _exact(value: object, type: ColumnType) -> object:
    return Decimal(value) if type.kind == "decimal" and isinstance(value, int) else value
