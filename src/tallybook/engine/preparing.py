"""Prepares the joins of steps: finds out which tables have unique keys, and fetches small tables.

A join to rows that the driver has needs no job of its own, and one to unique keys no check for a second match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tallybook.engine.pipeline import Pipeline
from tallybook.errors import ProblemError
from tallybook.storage.failure import SPARK_ERRORS

_MOST_ROWS = 20_000
_MOST_BYTES = 8 * 2**20
"""A small file can have more rows, or longer ones, than a plan should: Spark's optimizer compares all of them often."""
_AT_ONCE = 4
"""Fetching a small table is mostly planning, which one thread does."""


@contextmanager
def preparing_joins(pipeline: Pipeline) -> Iterator[None]:
    """Prepares the joins of all steps while the block runs. A table that cannot be prepared is joined with a check, and
    what is wrong with it is then reported by the step that it concerns."""
    build, steps = pipeline.build, pipeline.calculation.steps
    preparations = [one for step in steps for one in step.preparations(build, pipeline.tables, fetch_unique)]
    with ThreadPoolExecutor(_AT_ONCE, "prepare") as pool:
        prepared = [pool.submit(_attempt, one) for one in preparations]
        yield
        for one in prepared:
            one.result()


def _attempt(prepare: Callable[[], None]) -> None:
    with suppress(ProblemError, *SPARK_ERRORS):
        prepare()


def fetch_unique(frame: DataFrame, keys: Sequence[str]) -> DataFrame | None:
    """Returns the rows as a frame of their values; None if they are many, or if two of them have the same keys. Keys
    with NULL match nothing, so they may repeat.

    The frame is marked as small: Spark estimates the size of values in memory by their types, far above that of a file.
    """
    rows = frame.limit(_MOST_ROWS + 1).toArrow()
    if rows.num_rows > _MOST_ROWS or rows.nbytes > _MOST_BYTES:
        return None
    matching = rows.select(keys).drop_null()
    if matching.group_by(keys).aggregate([]).num_rows < matching.num_rows:
        return None
    return F.broadcast(frame.sparkSession.createDataFrame(rows, frame.schema))
