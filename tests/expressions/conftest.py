"""The evaluator every module here uses."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from .evaluation import Evaluator


@pytest.fixture(scope="session")
def evaluate(spark: SparkSession) -> Evaluator:
    return Evaluator(spark)
