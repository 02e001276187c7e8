"""Writing the rows of an output: a reader sees all of it or none, and a retry by the same run changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.storage.commit import write_delta
from tallybook.storage.delta import table_root
from tallybook.storage.guard import UNGUARDED, Guard
from tallybook.storage.plain import write_plain
from tallybook.storage.stage import Written

WriteMode = Literal["overwrite", "append", "error"]


def write(
    spark: SparkSession,
    frame: DataFrame,
    location: Location,
    *,
    mode: WriteMode,
    run_id: str,
    seq: int,
    guard: Guard = UNGUARDED,
) -> Written:
    """Write a frame to a location. `run_id` and `seq` name the output: writing it again replaces what it wrote. `guard`
    is asked directly before the rows become visible.

    A failure inside the frame's own computation comes out as Spark raised it; everything about the destination is
    a WriteFailed.
    """
    match location.source.type:
        case "delta":
            return write_delta(spark, frame, location, mode=mode, run_id=run_id, seq=seq, guard=guard)
        case "spark_catalog" | "database":
            raise fail(
                "WriteFailed",
                f"datasource '{location.source.id}' is of type {location.source.type}, which cannot be written yet",
                hint="write to a datasource of type delta; Spark and databases can read it from there",
            )
    return write_plain(spark, frame, location, mode=mode, run_id=run_id, seq=seq, guard=guard)


def written_by(location: Location, run_id: str, seq: int) -> Location:
    """Where the rows of one output lie in a place that others add to: its files carry its name."""
    if location.source.type != "delta":
        return replace(location, target=f"{location.target.rstrip('/')}/{run_id}-{seq}-*")
    files = location.source.model_copy(update={"type": "parquet"})
    return replace(location, source=files, target=f"{table_root(location)}/{run_id}-{seq}/*", version=None)
