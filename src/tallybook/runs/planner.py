"""Makes the plan of a run from a bound project: resolves every location, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tallybook.engine.plan import Plan, RunContext, make_plan
from tallybook.model.period import Calendar, uncovered_days
from tallybook.model.state import Registration
from tallybook.project.bind import BoundProject
from tallybook.project.load import Definitions
from tallybook.runs.destinations import check_destinations
from tallybook.runs.locations import Locations, registered_locations
from tallybook.runs.prepare import calendar_of


@dataclass(frozen=True)
class Planner:
    """Makes plans for the projects of one workspace."""

    definitions: Definitions
    registrations: Sequence[Registration]
    sandbox: Path

    @property
    def calendar(self) -> Calendar:
        return calendar_of(self.definitions)

    def plan(self, bound: BoundProject, context: RunContext, *, sandbox: bool) -> Plan:
        """Returns the plan of a run. Raises RunError if an output may not write to its destination."""
        locations = self._locations(bound, context, self.sandbox if sandbox else None)
        plan = make_plan(bound, context, locations.of_table, locations.of_output)
        destinations = {output.seq: locations.destination(output, plan.input) for output in plan.outputs}
        check_destinations(plan, destinations, sandbox=sandbox)
        return replace(plan, warnings=tuple(_missing_parts(plan, self.calendar)))

    def _locations(self, bound: BoundProject, context: RunContext, sandbox: Path | None) -> Locations:
        definitions = self.definitions
        return Locations(
            root=definitions.root,
            period=context.period,
            calendar=self.calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered=registered_locations(self.registrations),
            timestamp=context.timestamp,
            project=bound.head.id,
            sandbox=sandbox,
        )


def _missing_parts(plan: Plan, calendar: Calendar) -> Iterator[str]:
    """Yields a warning for each table whose locations leave out days of the run's period, because a listed calendar has
    no period for them."""
    whole = plan.context.period
    for source, locations in plan.locations.items():
        rendered = [calendar.period(location.period) for location in locations if location.period is not None]
        parts = [part for part in rendered if calendar.finer(part.level, whole.level)]
        missing = uncovered_days(whole, parts) if parts else []
        if missing:
            days = ", ".join(f"{first} to {last}" for first, last in missing)
            yield (
                f"calendar '{calendar.id}' has no {parts[0].level} for {days} of {whole.level} {whole.identifier}, "
                f"so no rows of {source} are read for these days"
            )
