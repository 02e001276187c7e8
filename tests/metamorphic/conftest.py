"""Many rows, and a fingerprint of all their cells: two frames with the same rows in any order have the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallybook.engine import frames
from tallybook.engine.execute import working_rows
from tallybook.engine.frames import apply_operations
from tallybook.engine.plan import Calculation, Optimisations
from tallybook.engine.tables import Tables

NONE = Optimisations(**{optimisation.name: False for optimisation in fields(Optimisations)})
MOMENT = datetime(2026, 2, 1, tzinfo=UTC)
REGIONS = ("EMEA", "APAC", "🙂", "", None)
Apply = Callable[..., DataFrame]


def ledger(count: int) -> pa.Table:
    """Rows with NULLs, ties, both signs, cents that do not add up in floats, and keys some of which have no rate."""
    random = Random(2026)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "region": pa.array([random.choice(REGIONS) for _ in range(count)]),
            "account": pa.array([f"{random.randint(0, 40):03d}" for _ in range(count)]),
            "quantity": pa.array([random.choice((None, *range(-5, 20))) for _ in range(count)], pa.int64()),
            "amount": pa.array(
                [None if random.random() < 0.05 else _cents(random) for _ in range(count)], pa.decimal128(18, 2)
            ),
            "day": pa.array([date(2026, 1, 1) + timedelta(days=random.randint(0, 30)) for _ in range(count)]),
        }
    )


def _cents(random: Random) -> Decimal:
    return Decimal(random.choice((1, 10, 5, 10**12, -(10**12), random.randint(-99999, 99999)))).scaleb(-2)


def rates() -> pa.Table:
    """One rate for each account but the last few."""
    accounts = [f"{number:03d}" for number in range(36)]
    values = [Decimal(number * 37 % 101).scaleb(-3) for number in range(36)]
    return pa.table({"account": accounts, "rate": pa.array(values, pa.decimal128(9, 6))})


@pytest.fixture(scope="session", params=[2_000, pytest.param(100_000, marks=pytest.mark.long)], ids="{:,} rows".format)
def rows(request: pytest.FixtureRequest) -> pa.Table:
    return ledger(request.param)


@pytest.fixture(autouse=True, params=[Optimisations(), pytest.param(NONE, marks=pytest.mark.long)], ids=["", "slow"])
def _optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs every test with all optimisations, and with none."""

    def rows(spark: SparkSession, calculation: Calculation, tables: Tables) -> DataFrame:
        return working_rows(spark, replace(calculation, optimisations=request.param), tables)

    monkeypatch.setattr(frames, "working_rows", rows)


@pytest.fixture
def apply(spark: SparkSession, rows: pa.Table) -> Apply:
    """The working dataset after some operations on the ledger, or on another frame."""

    def run(*operations: dict[str, Any], frame: DataFrame | None = None) -> DataFrame:
        numbered = [{"seq": index, "name": f"op {index}", **body} for index, body in enumerate(operations, 1)]
        sources = {"rates": spark.createDataFrame(rates())}
        given = spark.createDataFrame(rows) if frame is None else frame
        return apply_operations(given, numbered, period="2026-01", table="ledger", sources=sources, timestamp=MOMENT)

    return run


def fingerprint(frame: DataFrame, without: Sequence[str] = ("_row_id",)) -> tuple[object, ...]:
    """The number of rows, and two sums of hashes over all cells; a NULL is told from a neighbour's value."""
    names = sorted(set(frame.columns) - set(without))
    cells = [F.coalesce(F.col(name).cast("string"), F.lit("\0NULL")) for name in names]
    hashed = frame.select(F.xxhash64(*cells).alias("a"), F.xxhash64(F.lit(7), *cells).alias("b"))
    total = hashed.agg(F.count("*"), *(F.sum(F.col(name).cast("decimal(38,0)")) for name in ("a", "b")))
    return tuple(total.collect()[0])


def update(column: str, expression: str, **rest: Any) -> dict[str, Any]:
    joins = rest.pop("joins", [])
    arguments = {"assignments": [{"column": column, "expression": expression}], "joins": joins}
    return {"type": "update", "arguments": arguments, **rest}


def aggregate(keys: Sequence[str], **results: str) -> dict[str, Any]:
    aggregations = [{"column": name, "expression": text} for name, text in results.items()]
    return {"type": "aggregate", "arguments": {"group_by": list(keys), "aggregations": aggregations}}
