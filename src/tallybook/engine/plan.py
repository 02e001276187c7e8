"""The plan: what a run will do, as data. `explain` prints it, `pipeline` runs it; both read the same steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tallybook.engine.facts import RunFacts
from tallybook.errors import RunError, ValidationError, fail
from tallybook.model.location import Location
from tallybook.operations.append import AppendStep
from tallybook.operations.base import Step
from tallybook.operations.output import OutputStep
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.project.bind import BoundProject
from tallybook.rows.ids import MAX_STEPS

Locate = Callable[[SourceTable], tuple[Location, ...]]
Destine = Callable[[OutputStep, SourceTable], Location]


@dataclass(frozen=True)
class Plan:
    """A project bound to one period: its steps, the places it reads and the places it writes."""

    project_id: str
    project_version: int
    facts: RunFacts
    input: SourceTable
    schema: WorkingSchema
    steps: tuple[Step, ...]
    locations: Mapping[SourceTable, tuple[Location, ...]]
    destinations: Mapping[int, Location]
    """Of each output, by seq."""
    warnings: tuple[str, ...] = ()
    """What a user should know before the run."""

    @property
    def unnumbered(self) -> frozenset[SourceTable]:
        """Tables whose rows get no id, because they are joined only: no expression can read the id of a joined row."""
        rows_of = {self.input} | {step.source for step in self.steps if isinstance(step, AppendStep)}
        return frozenset(self.locations) - rows_of


def make_plan(bound: BoundProject, facts: RunFacts, locate: Locate, destine: Destine) -> Plan:
    """Resolves every place a checked project reads and writes."""
    if bound.problems:
        raise ValidationError(bound.problems)
    assert bound.input is not None and bound.schema is not None
    if len(bound.steps) > MAX_STEPS:
        raise fail("InvalidArguments", f"a project has at most {MAX_STEPS} operations, this one {len(bound.steps)}")
    sources = dict.fromkeys([bound.input, *(source for step in bound.steps for source in step.sources)])
    outputs = (step for step in bound.steps if isinstance(step, OutputStep))
    return Plan(
        project_id=bound.head.id,
        project_version=bound.head.version,
        facts=facts,
        input=bound.input,
        schema=bound.schema,
        steps=bound.steps,
        locations={source: locate(source) for source in sources},
        destinations={step.seq: _destined(step, bound.input, destine) for step in outputs},
    )


def _destined(step: OutputStep, input: SourceTable, destine: Destine) -> Location:
    try:
        return destine(step, input)
    except RunError as error:
        raise RunError(map(step.own, error.problems)) from error
