"""From a checked workspace to the plan of a run: dataset versions chosen, every place resolved, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tallybook.engine.context import RunContext
from tallybook.engine.plan import Plan, make_plan
from tallybook.errors import Problem, ValidationError, did_you_mean
from tallybook.model.period import Calendar, uncovered_days
from tallybook.model.state import ProjectState
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject, bind_project, pair_problems
from tallybook.project.catalog import Catalog
from tallybook.project.checked import Checked
from tallybook.project.load import ProjectEntry
from tallybook.project.model import ProjectHead
from tallybook.runs.destinations import check_destinations
from tallybook.runs.places import Places
from tallybook.runs.recording import Known


@dataclass(frozen=True)
class Planner:
    """Makes plans for the projects of one workspace."""

    checked: Checked
    known: Known
    sandbox: Path

    @property
    def calendar(self) -> Calendar:
        return calendar_of(self.checked)

    def plan(self, bound: BoundProject, context: RunContext, *, sandbox: bool) -> Plan:
        """What a run would do; RunError if its outputs may not write where they would."""
        places = self._places(bound, context, self.sandbox if sandbox else None)
        plan = make_plan(bound, context, places.of_table, places.of_output)
        destinations = {output.seq: places.destination(output, plan.input) for output in plan.outputs}
        check_destinations(plan, destinations, sandbox=sandbox)
        return replace(plan, warnings=tuple(_missing_parts(plan, self.calendar)))

    def bind(self, entry: ProjectEntry, state: ProjectState | None) -> BoundProject:
        """The project against the known dataset versions, its input at the pinned one; ValidationError if it does not
        fit them."""
        pinned = state.input_dataset_version if state else None
        update = {"version": state.version if state else 1}
        if pinned is not None:
            update["input_dataset_version"] = pinned
        head = entry.head.model_copy(update=update)
        return bind_recorded(self.checked, entry, head, self.known.catalog)

    def _places(self, bound: BoundProject, context: RunContext, sandbox: Path | None) -> Places:
        definitions = self.checked.definitions
        return Places(
            root=definitions.root,
            period=context.period,
            calendar=self.calendar,
            resolvers={id: entry.entity for id, entry in definitions.resolvers.items()},
            overrides=bound.head.resolver_overrides,
            datasources={id: entry.entity for id, entry in definitions.datasources.items()},
            registered=self.known.registered,
            timestamp=context.timestamp,
            project=bound.head.id,
            sandbox=sandbox,
        )


def _missing_parts(plan: Plan, calendar: Calendar) -> Iterator[str]:
    """A warning for each table whose places leave out days of the run's period, because a listed calendar has no period
    for them."""
    whole = plan.context.period
    for source, places in plan.locations.items():
        rendered = [calendar.period(place.period) for place in places if place.period is not None]
        parts = [part for part in rendered if calendar.finer(part.level, whole.level)]
        missing = uncovered_days(whole, parts) if parts else []
        if missing:
            days = ", ".join(f"{first} to {last}" for first, last in missing)
            yield (
                f"calendar '{calendar.id}' has no {parts[0].level} for {days} of {whole.level} {whole.identifier}, "
                f"so no rows of {source} are read for these days"
            )


def bind_recorded(checked: Checked, entry: ProjectEntry, head: ProjectHead, catalog: Catalog) -> BoundProject:
    """A project against datasets the store knows; ValidationError if it does not fit them."""
    bound = bind_project(head, entry.operations, catalog, entry.part)
    problems = bound.problems or tuple(_unfit_lookups(bound))
    if problems:
        raise ValidationError(_explained(checked, problem) for problem in problems)
    return bound


def _unfit_lookups(bound: BoundProject) -> Iterator[Problem]:
    """A registered dataset may have other columns in the store than those its readers' lookups were checked with."""
    assert bound.input is not None
    used = {lookup.alias: lookup for step in bound.steps for lookup in step.lookups}
    for alias, lookup in used.items():
        for _, problem in pair_problems(bound.input.table, lookup):
            yield replace(problem, message=f"lookup '{alias}': {problem.message}").within(project=bound.head.id)


def _explained(checked: Checked, problem: Problem) -> Problem:
    """A dataset the checker knew and the store does not is one that a project has yet to register."""
    if problem.type != "DatasetNotFound" or problem.subject is None:
        return problem
    makers = [
        f"`tallybook run {id}`"
        for id, bound in checked.bound.items()
        for output in publications(bound.steps)
        if output.register_as == problem.subject
    ]
    hint = f"it is registered by {' or '.join(makers)}, once that project is active" if makers else problem.hint
    return replace(problem, hint=hint)


def calendar_of(checked: Checked) -> Calendar:
    """The workspace's calendar; ValidationError when it names one that does not exist."""
    if checked.calendar is None:
        raise ValidationError(problem for problem in checked.problems if problem.project is None)
    return checked.calendar


def valid_project(checked: Checked, project_id: str) -> ProjectEntry:
    """A project without problems of its own; ValidationError names those it has.

    What it makes of its datasets is judged when it is bound to the versions it runs with, which for an active project
    may not be the newest.
    """
    entry = checked.definitions.projects.get(project_id)
    if entry is None:
        hint = did_you_mean(project_id, checked.definitions.projects)
        raise ValidationError([Problem("ProjectNotFound", f"there is no project '{project_id}'", hint)])
    judged_later = checked.bound[project_id].problems if project_id in checked.bound else ()
    about = [problem for problem in checked.problems if problem.project in (None, project_id)]
    wrong = [problem for problem in about if problem not in judged_later]
    if wrong:
        raise ValidationError(wrong)
    return entry
