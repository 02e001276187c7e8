"""Evaluates expressions on Spark, many in one query, and compares them with tables that read as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import ProblemError
from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.compile import Compiler, spark_type
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import TIMESTAMP, ColumnType
from tallybook.model.period import GREGORIAN
from tallybook.model.relative_period import RunPeriod

COMPILER = Compiler(datetime(2026, 2, 1, 23, 30, tzinfo=UTC), RunPeriod(GREGORIAN.period("2026-01"), GREGORIAN))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Columns = Mapping[str, tuple[str, object]]
"""Name to type and value: `{"amount": ("decimal(18,2)", Decimal("1.50"))}`."""


def check(expression: str, columns: Columns | None = None, grouped: frozenset[str] | None = None) -> Typed:
    """The typed expression; a ProblemError with everything that is wrong."""
    types = {name: ColumnType.parse(type) for name, (type, _) in (columns or {}).items()}
    checker = Checker(Scope((ScopeTable("t", types),)), grouped)
    typed = checker.check(parse(expression))
    if typed is None:
        raise ProblemError(checker.problems)
    return typed


def text_of(value: object) -> str:
    """A value as the tables write it."""
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def same(value: object, expected: str) -> bool:
    """Decimals are compared by value, everything else as text; quotes around an expected text are optional."""
    if isinstance(value, Decimal) and expected != "NULL":
        return value == Decimal(expected)
    return expected in (text_of(value), f'"{value}"')


@dataclass(frozen=True)
class Evaluator:
    """`evaluate("1 + 1")` is 2."""

    spark: SparkSession

    def __call__(self, expression: str, columns: Columns | None = None) -> object:
        return self.all([expression], columns)[0]

    def all(self, expressions: Sequence[str], columns: Columns | None = None) -> list[object]:
        """The values of many expressions over one row, in one query."""
        given = columns or {}
        types = {name: type for name, (type, _) in given.items()}
        return self.over(expressions, types, [tuple(value for _, value in given.values())])[0]

    def over(
        self, expressions: Sequence[str], types: Mapping[str, str], rows: Sequence[tuple[object, ...]]
    ) -> list[list[object]]:
        """The values of many expressions over rows, one list a row."""
        columns = {name: (type, None) for name, type in types.items()}
        return self.collect(self.frame(types, rows), [check(expression, columns) for expression in expressions])

    def frame(self, types: Mapping[str, str], rows: Sequence[tuple[object, ...]]) -> DataFrame:
        if not types:
            return self.spark.range(len(rows))
        fields = [T.StructField(name, spark_type(ColumnType.parse(type))) for name, type in types.items()]
        return self.spark.createDataFrame(list(rows), T.StructType(fields))

    def collect(self, frame: DataFrame, typed: Sequence[Typed]) -> list[list[object]]:
        """Every value must have the type the checker promised. Moments come back as UTC, whatever zone Python is in."""
        compiled = [COMPILER.column(each).alias(f"c{i}") for i, each in enumerate(typed)]
        result = frame.select(*compiled)
        assert [field.dataType for field in result.schema] == [spark_type(each.type) for each in typed]
        moments = {i for i, each in enumerate(typed) if each.type == TIMESTAMP}
        readable = [F.unix_micros(f"c{i}").alias(f"c{i}") if i in moments else f"c{i}" for i in range(len(typed))]
        return [
            [
                EPOCH + timedelta(microseconds=value) if i in moments and value is not None else value
                for i, value in enumerate(row)
            ]
            for row in result.select(*readable).collect()
        ]

    def table(self, lines: str, columns: Columns | None = None) -> None:
        """Lines `expression => value`; the value may also be `fails` (the query) or a problem type (the check)."""
        given = columns or {}
        frame = self.frame({name: type for name, (type, _) in given.items()}, [tuple(v for _, v in given.values())])
        wrong, evaluated = [], []
        for line in filter(None, map(str.strip, lines.splitlines())):
            expression, expected = (part.strip() for part in line.rsplit("=>", 1))
            try:
                typed = check(expression, columns)
            except ProblemError as error:
                wrong += [line for problem in error.problems if problem.type != expected]
                continue
            if expected == "fails":
                wrong += [] if _fails(frame, typed) else [f"{expression} does not fail"]
            else:
                evaluated.append((expression, expected, typed))
        values = self.collect(frame, [typed for _, _, typed in evaluated])[0] if evaluated else []
        wrong += [
            f"{expression} => {text_of(value)}, not {expected}"
            for (expression, expected, _), value in zip(evaluated, values, strict=True)
            if not same(value, expected)
        ]
        assert not wrong, "\n" + "\n".join(wrong)


def _fails(frame: DataFrame, typed: Typed) -> bool:
    try:
        frame.select(COMPILER.column(typed)).collect()
    except PySparkException:
        return True
    return False
