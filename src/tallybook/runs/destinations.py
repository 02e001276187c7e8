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
from tallybook.operations.output import OutputStep
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
    outputs = [step for step in plan.steps if isinstance(step, OutputStep)]
    reads = tuple(_reads(plan)) if outputs else ()
    problems: list[Problem] = []
    earlier: list[Writes] = []
    for step in outputs:
        own = [destinations[step.seq], *([plan.destinations[step.seq]] if sandbox else [])]
        writes = Writes(step, own[0].source.type, _area(own[0]))
        found = [collision(writes, earlier), *(_onto_input(place, reads) for place in own)]
        earlier.append(writes)
        problems += [step.own(problem) for problem in found if problem is not None] or _refused(plan, step, sandbox)
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
    for step in plan.steps if reads else ():
        problem = _onto_input(plan.destinations[step.seq], reads) if isinstance(step, OutputStep) else None
        if problem is not None:
            raise RunError([step.own(problem)])


def _refused(plan: Plan, step: OutputStep, sandbox: bool) -> list[Problem]:
    """What is in the way at the place where the run would write."""
    try:
        mode = "overwrite" if sandbox else step.mode
        refuse_place(plan.destinations[step.seq], mode=mode, run_id=plan.facts.run_id, seq=step.seq)
    except RunError as error:
        return [step.own(problem) for problem in error.problems]
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
