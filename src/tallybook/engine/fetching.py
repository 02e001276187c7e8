"""Fetches the small tables that steps join, before the first step.

A join to rows that the driver has needs no job of its own, and if their keys are unique, no check for a second match.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pyspark.sql import DataFrame

from tallybook.engine.pipeline import Pipeline
from tallybook.errors import ProblemError
from tallybook.operations.base import Step
from tallybook.storage.failure import SPARK_ERRORS

_MOST_ROWS = 50_000
"""A file of a few megabytes can have more rows than a plan should."""
_AT_ONCE = 4
"""Fetching a small table is mostly planning, which one thread does."""


def fetch_small_tables(pipeline: Pipeline) -> None:
    """Fetches the small joined tables of all steps. What cannot be fetched is joined as any other table, and a failure
    is then reported by the step that it concerns."""
    build, is_small = pipeline.build, pipeline.tables.is_small

    def fetch(step: Step) -> None:
        with suppress(ProblemError, *SPARK_ERRORS):
            step.fetch_tables(build, is_small, fetch_unique)

    joining = [step for step in pipeline.calculation.steps if step.unique_tables]
    if joining:
        with ThreadPoolExecutor(_AT_ONCE, "fetch") as pool:
            list(pool.map(fetch, joining))


def fetch_unique(frame: DataFrame, keys: Sequence[str]) -> DataFrame | None:
    """Returns the rows as a frame of their values; None if they are many, or if two of them have the same keys. Keys
    with NULL match nothing, so they may repeat."""
    rows = frame.limit(_MOST_ROWS + 1).toArrow()
    matching = rows.select(keys).drop_null()
    if rows.num_rows > _MOST_ROWS or matching.group_by(keys).aggregate([]).num_rows < matching.num_rows:
        return None
    return frame.sparkSession.createDataFrame(rows, frame.schema)
