"""Makes the plan of a run from a bound project: finds where it reads tables and writes outputs. It writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from tallybook.engine.plan import Plan, RunContext, make_plan
from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DEFAULT_FORMAT, DataSource, FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period, uncovered_days
from tallybook.model.relative_period import RunPeriod
from tallybook.model.resolver import Resolver
from tallybook.model.state import Registration
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import BoundProject
from tallybook.project.load import Definitions
from tallybook.resolve.render import render
from tallybook.resolve.resolve import pick_resolver, resolve_all
from tallybook.resolve.targets import path_to_write, sandbox_path, table_to_write, usable_source
from tallybook.runs.destinations import check_destinations
from tallybook.runs.prepare import calendar_of
from tallybook.runs.registered import RegisteredDatasets
from tallybook.runs.sandbox import NOTHING, SandboxDatasets
from tallybook.storage.inputs import current_version


@dataclass(frozen=True)
class Planner:
    """Makes plans for the projects of one workspace."""

    definitions: Definitions
    registrations: Sequence[Registration]
    sandbox: Path
    drafts: SandboxDatasets = NOTHING
    """What the project reads of other drafts, if it is one."""

    @property
    def calendar(self) -> Calendar:
        return calendar_of(self.definitions)

    def plan(self, bound: BoundProject, context: RunContext, *, sandbox: bool) -> Plan:
        """Returns the plan of a run. Raises RunError if an output may not write to its destination."""
        locations = self._locations(bound, context, self.sandbox if sandbox else None)
        plan = make_plan(bound, context, locations.of_table, locations.of_output)
        destinations = (
            {output.seq: locations.destination(output, plan.input) for output in plan.outputs}
            if sandbox
            else plan.destinations
        )
        check_destinations(plan, destinations, sandbox=sandbox)
        return replace(plan, warnings=(*_missing_parts(plan, self.calendar), *self._read_from_drafts(plan)))

    def _read_from_drafts(self, plan: Plan) -> Iterator[str]:
        """Yields a notice for each dataset that a draft reads from the sandbox."""
        read = dict.fromkeys(source.dataset.id for source in plan.locations if self.drafts.of(source.dataset))
        for id in read:
            maker = self.drafts.by_id[id].project_id
            yield f"'{id}' is read from the sandbox, where draft '{maker}' registered it"

    def _locations(self, bound: BoundProject, context: RunContext, sandbox: Path | None) -> Locations:
        definitions = self.definitions
        return Locations(
            root=definitions.root,
            period=context.period,
            calendar=self.calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered=RegisteredDatasets(self.registrations),
            timestamp=context.timestamp,
            project=bound.head.id,
            sandbox=sandbox,
            drafts=self.drafts,
        )


def _missing_parts(plan: Plan, calendar: Calendar) -> Iterator[str]:
    """Yields a warning for each table whose locations leave out days of a period that it is read for, because a listed
    calendar has no period for them."""
    wholes = [(source, whole) for source in plan.locations for whole in plan.context.periods_of(source)]
    for source, whole in wholes:
        names = [location.period for location in plan.locations[source] if location.period is not None]
        rendered = [calendar.period(name) for name in names]
        parts = [part for part in rendered if calendar.finer(part.level, whole.level) and whole.contains(part)]
        missing = uncovered_days(whole, parts) if parts else []
        if missing:
            days = ", ".join(f"{first} to {last}" for first, last in missing)
            yield (
                f"calendar '{calendar.id}' has no {parts[0].level} for {days} of {whole.level} {whole.identifier}, "
                f"so no rows of {source} are read for these days"
            )


@dataclass(frozen=True)
class Locations:
    """Finds locations for one period of one workspace."""

    root: Path
    period: Period
    calendar: Calendar
    resolvers: Mapping[str, Resolver]
    overrides: Mapping[str, str]
    datasources: Mapping[str, DataSource]
    registered: RegisteredDatasets
    timestamp: datetime
    """The run's, which the `when` of a rule can read."""
    project: str = ""
    sandbox: Path | None = None
    """The folder that takes the outputs of a draft instead of their destinations."""
    drafts: SandboxDatasets = NOTHING
    """What other drafts registered in the sandbox."""

    def of_table(self, source: SourceTable) -> tuple[Location, ...]:
        """Returns the locations of a table's rows; Delta tables at their current version, so that a replay reads the
        same."""
        dataset = source.dataset
        run_period = RunPeriod(self.period, self.calendar)
        if self.registered.has(dataset):
            return self.registered.locations(source, run_period)
        draft = self.drafts.of(dataset)
        if draft is not None:
            return self.drafts.locations(draft, source, run_period)
        locations = resolve_all(
            source.table.name,
            dataset.id,
            source.periods(run_period),
            calendar=self.calendar,
            resolver=self.resolver_of(dataset),
            datasources=self.datasources,
            timestamp=self.timestamp,
            root=self.root,
        )
        return tuple(replace(location, version=current_version(location)) for location in locations)

    def resolver_of(self, dataset: Dataset) -> Resolver:
        return pick_resolver(dataset.id, dataset.resolver_id, self.overrides, self.resolvers)

    def of_output(self, output: Publication, input: SourceTable) -> Location:
        """Returns where a run writes an output: its destination, or a path in the sandbox."""
        destination = self.destination(output, input)
        if self.sandbox is None:
            return destination
        source = destination.source
        if source.path_prefix is None:
            source = FileSource(id=source.id, type=DEFAULT_FORMAT, options=FileOptions(path_prefix="."))
        name = f"{output.seq}-{PurePosixPath(destination.target).name}"
        path = sandbox_path(self.sandbox, self.root, self.project, self.period.identifier, name)
        return Location(source, path)

    def destination(self, output: Publication, input: SourceTable) -> Location:
        """Returns where an output of an active project is written."""
        destination = output.destination

        def rendered(template: str) -> str:
            return render(template, self.period, input.table.name, input.dataset.id)

        if destination.location is None:
            assert destination.datasource_id is not None and destination.table is not None
            source = usable_source(destination.datasource_id, self.datasources, self.root)
            schema = rendered(destination.schema_) if destination.schema_ else None
            return Location(source, table_to_write(source, rendered(destination.table), self.root, schema))
        path = rendered(destination.location.path)
        return Location(destination.location.source(path), path_to_write(path, self.root))
