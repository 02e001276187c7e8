"""Scenarios run in the suite's own session, set as `tallybook test` would start one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tallybook.engine.local import LocalEngine
from tallybook.scenarios.suite import QUICK


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[LocalEngine]:
    before = {key: spark.conf.get(key, None) for key in QUICK}
    for key, value in QUICK.items():
        spark.conf.set(key, value)
    yield LocalEngine(spark)
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
