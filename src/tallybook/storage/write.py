"""Writes the rows of an output: a reader sees all of them or none, and a retry by the same run changes nothing."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import ProblemError, fail
from tallybook.model.location import Location
from tallybook.model.replaced_periods import ReplacedPeriods
from tallybook.storage.failure import could_not_write
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
    periods: ReplacedPeriods | None = None,
    partition_by: tuple[str, ...] = (),
    ordered: bool = False,
) -> Written:
    """Writes a frame to a location. `run_id` and `seq` name the output: writing it again replaces what it wrote.
    `guard` is checked directly before the rows become visible. `periods` are those that `replace_period` replaces.
    `partition_by` are columns by whose values the rows are divided among folders. `ordered` says that the rows are
    sorted and in one partition.

    A failure in the computation of the frame is raised as Spark raised it; a failure of the destination is WriteFailed.
    """
    check_destination(location, mode=mode, run_id=run_id, seq=seq, partition_by=partition_by)
    output = Output(run_id, seq, mode, guard, periods, partition_by, ordered)
    return format_of(location).write(spark, frame, location, output)


def check_destination(
    location: Location, *, mode: WriteMode, run_id: str, seq: int, partition_by: tuple[str, ...] = ()
) -> None:
    """Raises WriteFailed if the format or what is at the location forbids the output. It needs no rows and changes
    nothing."""
    format = format_of(location)
    format.require(Ability.WRITE, location)
    if mode == "replace_period":
        format.require(Ability.REPLACE_PERIOD, location)
    local = location.local_path
    if local is not None and os.path.realpath(local) != os.path.normpath(local):
        raise fail(
            "WriteFailed",
            f"{local} leads to {os.path.realpath(local)} through a link that did not exist when the run was planned",
            hint="run again",
        )
    try:
        format.check_destination(location, Output(run_id, seq, mode, partition_by=partition_by))
    except OSError as error:
        raise could_not_write(location, error) from error


def written_by(location: Location, run_id: str, seq: int, partition_by: tuple[str, ...] = ()) -> Location:
    """Returns the location of the rows of one output, without those that others have added. Columns of partitions are
    missing in plain files."""
    return format_of(location).written_by(location, Output(run_id, seq, partition_by=partition_by))


def has_written(location: Location, run_id: str, seq: int) -> bool | None:
    """True if an output of a run is visible at its destination; None if that cannot be found out."""
    try:
        return format_of(location).has_written(location, Output(run_id, seq))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (ProblemError, OSError):
        return None
