"""Writing the rows of an output: a reader sees all of it or none, and a retry by the same run changes nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import ProblemError, fail
from tallybook.model.location import Location
from tallybook.storage.base import local_path
from tallybook.storage.commit import refuse_folder, write_delta
from tallybook.storage.delta import open_table, table_root
from tallybook.storage.guard import UNGUARDED, Guard
from tallybook.storage.ownership import output_name
from tallybook.storage.plain import refuse_files, write_plain
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
    refuse_place(location, mode=mode, run_id=run_id, seq=seq)
    if location.source.type == "delta":
        return write_delta(spark, frame, location, mode=mode, run_id=run_id, seq=seq, guard=guard)
    return write_plain(spark, frame, location, mode=mode, run_id=run_id, seq=seq, guard=guard)


def refuse_place(location: Location, *, mode: WriteMode, run_id: str, seq: int) -> None:
    """WriteFailed if what is at the place forbids the output. Needs no rows and changes nothing."""
    if location.source.type in ("spark_catalog", "database"):
        raise fail(
            "WriteFailed",
            f"datasource '{location.source.id}' is of type {location.source.type}, which cannot be written yet",
            hint="write to a datasource of type delta; Spark and databases can read it from there",
        )
    local = local_path(location)
    if local is not None and os.path.realpath(local) != os.path.normpath(local):
        raise fail(
            "WriteFailed",
            f"{local} leads to {os.path.realpath(local)} through a link that was not there when the run was planned",
            hint="run again",
        )
    try:
        if location.source.type == "delta":
            refuse_folder(location)
        else:
            refuse_files(location, mode, output_name(run_id, seq))
    except OSError as error:
        raise fail("WriteFailed", f"{location} could not be written: {error}") from error


def written_by(location: Location, run_id: str, seq: int) -> Location:
    """Where the rows of one output lie in a place that others add to: its files carry its name."""
    if location.source.type != "delta":
        return replace(location, target=f"{location.target.rstrip('/')}/{output_name(run_id, seq)}-*")
    files = location.source.model_copy(update={"type": "parquet"})
    return replace(location, source=files, target=f"{table_root(location)}/{output_name(run_id, seq)}/*", version=None)


def has_written(location: Location, run_id: str, seq: int) -> bool | None:
    """Whether an output of a run is visible at its destination; None where the destination cannot be asked."""
    try:
        if location.source.type == "delta":
            table = open_table(replace(location, version=None))
            return table is not None and (table.transaction_version(run_id) or 0) >= seq
        local, prefix = local_path(location), f"{output_name(run_id, seq)}-"
        return None if local is None else any(file.name.startswith(prefix) for file in Path(local).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (ProblemError, OSError):
        return None
