"""Checks when a plan is made whether its outputs may write to their destinations.

An output may not change what its own run reads, nor undo another output of the run. The destinations of a draft are
checked as well, although it writes into the sandbox: an error must not appear only after activation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.engine.plan import Plan
from tallybook.errors import Problem, RunError
from tallybook.model.location import Location
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.check_outputs import Writes, collision
from tallybook.resolve.overlap import Area, area, area_of
from tallybook.storage.formats import format_of
from tallybook.storage.write import check_destination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Read:
    source: SourceTable
    location: Location
    area: Area


def check_destinations(plan: Plan, destinations: Mapping[int, Location], *, sandbox: bool) -> None:
    """Raises RunError with every reason why an output may not write. `destinations` are those of the active project."""
    reads = tuple(_reads(plan)) if plan.outputs else ()
    problems: list[Problem] = []
    earlier: list[Writes] = []
    for output in plan.outputs:
        own = [destinations[output.seq], *([plan.destinations[output.seq]] if sandbox else [])]
        writes = Writes(output, own[0].source, area_of(own[0]))
        checks = [collision(writes, earlier), *(_onto_input(location, reads) for location in own)]
        earlier.append(writes)
        attributed = [output.attribute(problem) for problem in checks if problem is not None]
        problems += attributed or _refused(plan, output, sandbox)
    if problems:
        raise RunError(problem.within(project=plan.project_id) for problem in problems)


def check_catalog_tables(spark: SparkSession, plan: Plan) -> None:
    """Raises RunError if an output would write to a folder that the run reads, where one of them is the folder of a
    table of the Spark catalog. Only Spark knows that folder."""
    in_tables = tuple(
        _Read(source, location, area(folder))
        for source, locations in plan.locations.items()
        for location in locations
        for folder in format_of(location).table_folders(spark, location)
    )
    for output in plan.outputs:
        destination = plan.destinations[output.seq]
        folders = [area(folder) for folder in format_of(destination).table_folders(spark, destination)]
        checks = [_onto_input(destination, in_tables)] if in_tables else []
        checks += [_onto_input(destination, (*in_tables, *_reads(plan)), folder) for folder in folders]
        problems = [output.attribute(problem) for problem in checks if problem is not None]
        if problems:
            raise RunError(problems[:1])


def _refused(plan: Plan, output: Publication, sandbox: bool) -> list[Problem]:
    """Returns the problems of the location where the run would write."""
    try:
        mode = "overwrite" if sandbox else output.mode
        check_destination(
            plan.destinations[output.seq],
            mode=mode,
            run_id=plan.context.run_id,
            seq=output.seq,
            partition_by=output.partition_by,
        )
    except RunError as error:
        return [output.attribute(problem) for problem in error.problems]
    return []


def _onto_input(destination: Location, reads: tuple[_Read, ...], folder: Area | None = None) -> Problem | None:
    """Returns the problem if writing to the destination would change a location that the run reads. `folder` is the
    folder of a destination that is a table of the catalog.

    A format that keeps versions is read at the version it had when the run was planned, so the run may overwrite it.
    """
    written = folder or area_of(destination)
    for read in reads:
        relation = written.relation(read.area)
        same_format = destination.source.type == read.location.source.type
        if relation is None or (relation == "is" and same_format and destination.source.keeps_versions):
            continue
        table, dataset = read.source.table.name, read.source.dataset.id
        return Problem(
            "InvalidDestination",
            f"the output would write to {destination}, which {relation} a location that the same run reads: "
            f"{read.location} (table '{table}' of dataset '{dataset}')",
            "write to another location; only a Delta table can be read and overwritten by one run",
        )
    return None


def _reads(plan: Plan) -> Iterator[_Read]:
    for source, locations in plan.locations.items():
        for location in locations:
            yield from (_Read(source, location, read) for read in format_of(location).areas_read(location))
