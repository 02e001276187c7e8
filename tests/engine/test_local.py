"""Frames made of rows in hand, and turned into them again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tallybook.engine.local import collected, local_frame
from tallybook.model.columns import ColumnType


@pytest.fixture(params=["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process in another zone; Spark's own stays as it is."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_rows_come_back_as_they_went_in_wherever_this_machine_is(spark: SparkSession) -> None:
    types = ("string", "integer", "decimal(10,2)", "boolean", "date", "timestamp")
    columns = {f"a {type}": ColumnType.parse(type) for type in types}
    rows = [
        ("A", 1, Decimal("1.50"), True, date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)),
        ("B", 2, Decimal("2.25"), False, date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
        ("C", 3, Decimal("0.00"), None, date(2026, 3, 29), datetime(2026, 3, 29, 2, 30, tzinfo=UTC)),
        (None,) * 6,
    ]
    found = collected(local_frame(spark, columns, rows))
    assert found == rows
    assert {row[-1].utcoffset() for row in found if isinstance(row[-1], datetime)} == {timedelta(0)}
