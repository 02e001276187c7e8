"""Scenarios run in the suite's own session."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tallybook.engine.local import LocalEngine


@pytest.fixture(scope="session")
def engine(spark: SparkSession) -> LocalEngine:
    return LocalEngine(spark)
