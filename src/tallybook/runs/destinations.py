"""Whether the outputs of a plan may write where they would: judged when the plan is made, before anything is computed.

An output may not change what its own run reads, nor undo another output of it. A draft is judged by its destinations
as well, although it writes into the sandbox: it must not turn out on activation that the project cannot run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.engine.plan import Plan
from tallybook.errors import Problem, RunError
from tallybook.model.datasource import FileSource
from tallybook.model.location import Location
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.check_outputs import Writes, collision
from tallybook.resolve.overlap import Area, area, areas_read
from tallybook.storage.catalog import table_folders
from tallybook.storage.files import as_pattern
from tallybook.storage.write import refuse_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Read:
    source: SourceTable
    place: Location
    area: Area


def check_destinations(plan: Plan, destinations: Mapping[int, Location], *, sandbox: bool) -> None:
    """RunError with every reason why an output may not write. `destinations` are those of the active project."""
    reads = tuple(_reads(plan)) if plan.outputs else ()
    problems: list[Problem] = []
    earlier: list[Writes] = []
    for output in plan.outputs:
        own = [destinations[output.seq], *([plan.destinations[output.seq]] if sandbox else [])]
        writes = Writes(output, own[0].source.type, _area(own[0]))
        found = [collision(writes, earlier), *(_onto_input(place, reads) for place in own)]
        earlier.append(writes)
        attributed = [output.attribute(problem) for problem in found if problem is not None]
        problems += attributed or _refused(plan, output, sandbox)
    if problems:
        raise RunError(problem.within(project=plan.project_id) for problem in problems)


def check_catalog_tables(spark: SparkSession, plan: Plan) -> None:
    """RunError if an output would write where a table of the Spark catalog has its files: only Spark knows where."""
    reads = tuple(
        _Read(source, place, area(folder))
        for source, places in plan.locations.items()
        for place in places
        if place.source.type == "spark_catalog"
        for folder in table_folders(spark, place)
    )
    for output in plan.outputs if reads else ():
        problem = _onto_input(plan.destinations[output.seq], reads)
        if problem is not None:
            raise RunError([output.attribute(problem)])


def _refused(plan: Plan, output: Publication, sandbox: bool) -> list[Problem]:
    """What is in the way at the place where the run would write."""
    try:
        mode = "overwrite" if sandbox else output.mode
        refuse_place(plan.destinations[output.seq], mode=mode, run_id=plan.context.run_id, seq=output.seq)
    except RunError as error:
        return [output.attribute(problem) for problem in error.problems]
    return []


def _onto_input(destination: Location, reads: tuple[_Read, ...]) -> Problem | None:
    """The first place the run reads that writing to the destination would change."""
    written = _area(destination)
    for read in reads:
        relation = written.relation(read.area)
        both_delta = destination.source.type == read.place.source.type == "delta"
        if relation is None or (relation == "is" and both_delta):
            continue
        table, dataset = read.source.table.name, read.source.dataset.id
        return Problem(
            "InvalidDestination",
            f"the output would write to {destination}, which {relation} a place that the same run reads: {read.place} "
            f"(table '{table}' of dataset '{dataset}')",
            "write to another place; only a Delta table can be read and overwritten by one run",
        )
    return None


def _reads(plan: Plan) -> Iterator[_Read]:
    for source, places in plan.locations.items():
        for place in places:
            if isinstance(place.source, FileSource):
                found = [area(place.target)] if place.source.type == "delta" else areas_read(as_pattern(place))
                yield from (_Read(source, place, each) for each in found)


def _area(location: Location) -> Area:
    return (
        area(location.target)
        if isinstance(location.source, FileSource)
        else Area(location.source.id, (location.target,))
    )
