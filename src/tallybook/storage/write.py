"""Writes the rows of an output: a reader sees all of them or none, and a retry by the same run changes nothing."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import ProblemError, fail
from tallybook.model.location import Location
from tallybook.storage.formats import Ability, format_of
from tallybook.storage.output import UNGUARDED, Guard, Output, WriteMode
from tallybook.storage.stage import Written


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
    """Writes a frame to a location. `run_id` and `seq` name the output: writing it again replaces what it wrote.
    `guard` is checked directly before the rows become visible.

    A failure in the computation of the frame is raised as Spark raised it; a failure of the destination is WriteFailed.
    """
    check_destination(location, mode=mode, run_id=run_id, seq=seq)
    return format_of(location).write(spark, frame, location, Output(run_id, seq, mode, guard))


def check_destination(location: Location, *, mode: WriteMode, run_id: str, seq: int) -> None:
    """Raises WriteFailed if the format or what is at the location forbids the output. It needs no rows and changes
    nothing."""
    format = format_of(location)
    format.require(Ability.WRITE, location)
    local = location.local_path
    if local is not None and os.path.realpath(local) != os.path.normpath(local):
        raise fail(
            "WriteFailed",
            f"{local} leads to {os.path.realpath(local)} through a link that did not exist when the run was planned",
            hint="run again",
        )
    try:
        format.check_destination(location, Output(run_id, seq, mode))
    except OSError as error:
        raise fail("WriteFailed", f"{location} could not be written: {error}") from error


def written_by(location: Location, run_id: str, seq: int) -> Location:
    """Returns the location of the rows of one output, without those that others have added."""
    return format_of(location).written_by(location, Output(run_id, seq))


def has_written(location: Location, run_id: str, seq: int) -> bool | None:
    """True if an output of a run is visible at its destination; None if that cannot be found out."""
    try:
        return format_of(location).has_written(location, Output(run_id, seq))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (ProblemError, OSError):
        return None
