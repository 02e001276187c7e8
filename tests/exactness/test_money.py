"""Money to the last digit: the engine against Python's `decimal` with digits to spare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import product
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.engine.frames import apply_operations

EXACT = Context(prec=120, rounding=ROUND_HALF_UP)
MANY = [20_000, pytest.param(1_000_000, marks=pytest.mark.long)]
EDGES = ((19, 9), (18, 6), (38, 0), (38, 10), (28, 18), (38, 37), (38, 38), (1, 0))


def number(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale, EXACT)


def rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def breaking_floats(count: int, scale: int) -> list[Decimal]:
    """Huge values that cancel out, dust between them, and cents no binary fraction has."""
    random = Random(count)
    kinds = (10**17 + 1, -(10**17), 1, -1, 10, 5, 10**scale // 3, 10**12 + 7)
    return [number(random.choice(kinds) * random.choice((1, 1, -1)), scale) for _ in range(count)]


def _sum(values: Sequence[Decimal]) -> Decimal:
    """Python's own sum would round to 28 digits."""
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


def run(spark: SparkSession, columns: dict[str, pa.Array], *operations: Mapping[str, object]) -> DataFrame:
    numbered = [{"seq": index, "name": f"op {index}", **body} for index, body in enumerate(operations, 1)]
    rows = pa.table(columns)
    frame = spark.createDataFrame(rows)
    if len(rows) > 1000:  # or the driver would evaluate them all while it plans
        frame = frame.repartition(4)
    moment = datetime(2026, 2, 1, tzinfo=UTC)
    return apply_operations(frame, numbered, period="2026-01", timestamp=moment)


def updated(spark: SparkSession, columns: dict[str, pa.Array], **assignments: str) -> DataFrame:
    parts = [{"column": name, "expression": text} for name, text in assignments.items()]
    return run(spark, columns, {"type": "update", "arguments": {"assignments": parts}})


def scale_of(frame: DataFrame, column: str) -> int:
    """A decimal that was collected does not always show the zeros of its type."""
    type = frame.schema[column].dataType
    assert isinstance(type, T.DecimalType)
    return type.scale


def decimals(values: Sequence[Decimal | None], precision: int, scale: int) -> pa.Array:
    return pa.array(values, pa.decimal128(precision, scale))


@pytest.mark.parametrize("count", MANY)
def test_a_sum_that_breaks_floats(spark: SparkSession, count: int) -> None:
    values = breaking_floats(count, 6)
    total = _sum(values)
    assert float(total) != sum(float(value) for value in values), "these values are too easy"

    results = {
        "total": "SUM(v)",
        "average": "AVG(v)",
        "squares": "SUM(ROUND(v * v, 6))",
        "thirds": "SUM(ROUND(v / 3, 6))",
    }
    aggregations = [{"column": name, "expression": text} for name, text in results.items()]
    arguments = {"group_by": ["_period"], "aggregations": aggregations}
    frame = {"v": decimals(values, 28, 6)}
    summary = run(spark, frame, {"type": "aggregate", "arguments": arguments}).filter("total IS NOT NULL")
    (found,) = summary.collect()

    assert found.total == total
    assert found.average == rounded(EXACT.divide(total, Decimal(count)), scale_of(summary, "average"))
    squares = [rounded(EXACT.multiply(v, v), 6) for v in values]
    assert found.squares == _sum(squares)
    assert found.thirds == _sum([rounded(EXACT.divide(v, Decimal(3)), 6) for v in values])


def test_products_and_quotients_at_the_edge_of_38_digits(spark: SparkSession) -> None:
    """Every digit that the type of the result has is right; what does not fit fails, and is not here."""
    columns: dict[str, pa.Array] = {}
    assignments: dict[str, str] = {}
    expected: dict[str, Decimal] = {}
    for (i, a), (j, b) in product(enumerate(EDGES), enumerate(EDGES)):
        x, y = _filled(*a, "7391846205"), _filled(*b, "2468013579")
        columns |= {f"x{i}": decimals([x], *a), f"y{j}": decimals([y], *b)}
        for name, operator, value in (("p", "*", EXACT.multiply(x, y)), ("q", "/", EXACT.divide(x, y))):
            whole = (a[0] - a[1]) + (b[0] - b[1]) + 1 if operator == "*" else (a[0] - a[1]) + b[1]
            if abs(value) < Decimal(10) ** min(whole, 32):
                assignments[f"{name}{i}_{j}"] = f"x{i} {operator} y{j}"
                expected[f"{name}{i}_{j}"] = value
    frame = updated(spark, columns, **assignments)
    (row,) = frame.collect()
    wrong = []
    for name, value in expected.items():
        if row[name] != rounded(value, scale_of(frame, name)):
            wrong.append(f"{assignments[name]} ({name}) is {row[name]}, not {value}")
    assert len(expected) > 80
    assert not wrong, "\n".join(wrong)


def _filled(precision: int, scale: int, digits: str) -> Decimal:
    return number(int((digits * 4)[:precision]), scale)


def test_halves_go_up_away_from_zero(spark: SparkSession) -> None:
    units = [*range(-1005, 1006, 5), 10**15 + 5, -(10**15) - 5, 10**17 - 5]
    values = [number(each, 3) for each in units]
    columns = {
        "v": decimals(values, 18, 3),
        "cents": decimals([None] * len(values), 18, 2),
    }
    texts = {"cents": "v", "two": "ROUND(v, 2)", "one": "ROUND(v, 1)", "whole": "ROUND(v)", "tens": "ROUND(v, -1)"}
    for row in updated(spark, columns, **texts).collect():
        assert row.cents == row.two == rounded(row.v, 2)
        assert row.one == rounded(row.v, 1)
        assert row.whole == int(rounded(row.v, 0))
        assert row.tens == int(rounded(EXACT.divide(row.v, Decimal(10)), 0)) * 10


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("v * 10", Decimal(10**37)),
        ("v + v", Decimal(9 * 10**37)),
        ("v / 0.1", Decimal(10**37)),
        ("TO_DECIMAL(v)", Decimal(10**12)),
        ("ROUND(v)", Decimal(2**63)),
    ],
)
def test_what_does_not_fit_fails(spark: SparkSession, expression: str, value: Decimal) -> None:
    with pytest.raises(PySparkException):
        updated(spark, {"v": decimals([value], 38, 0)}, result=expression).collect()
