"""The plan of a run, as data, with the constants of the run. `documents.plan` shows it and `execute` runs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from tallybook.engine.keeping import IsSmall, Keep, decide
from tallybook.errors import RunError, ValidationError, fail
from tallybook.expressions.evaluate import BlindEvaluator, Evaluator
from tallybook.model.columns import OPERATION_SEQ, PERIOD, SOURCE_DATASET_ID, SOURCE_TABLE, STRING
from tallybook.model.location import Location
from tallybook.model.period import Period
from tallybook.operations.base import Step
from tallybook.operations.flow import publications, source_tables, tables_without_positions
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.project.bind import BoundProject
from tallybook.rows.ids import MAX_STEPS
from tallybook.rows.segments import Constant, Segment, new_segment
from tallybook.storage.inputs import are_small

FROM_THE_ENGINE = {SOURCE_DATASET_ID, SOURCE_TABLE, OPERATION_SEQ}
"""System columns that the engine sets on input rows even if the data has them."""


@dataclass(frozen=True)
class RunContext:
    """The constants of one run."""

    run_id: str
    period: Period
    as_of: date
    timestamp: datetime
    epoch_ms: int
    """A number no other run of the store has: the time part of the ids of its rows."""


Locate = Callable[[SourceTable], tuple[Location, ...]]
Destine = Callable[[Publication, SourceTable], Location]


@dataclass(frozen=True)
class Optimisations:
    """What makes a calculation faster. The results are the same without them, which tests check."""

    evaluate_constants: bool = True
    """Skip segments that a selector cannot select, and do not compute what is the same in every row."""
    fuse_updates: bool = True
    """Make one projection of updates that do not depend on each other."""
    keep_rows: bool = True
    """Compute rows once that are dear and used more than once."""


@dataclass(frozen=True)
class Calculation:
    """Checked steps over one working dataset, for one period."""

    context: RunContext
    input: SourceTable
    schema: WorkingSchema
    """The working dataset before the first step."""
    steps: tuple[Step, ...]
    optimisations: Optimisations = field(default=Optimisations(), kw_only=True)

    @classmethod
    def of(cls, bound: BoundProject, context: RunContext) -> Calculation:
        """Returns the calculation of a bound project. Raises ValidationError if the project has problems."""
        if bound.problems:
            raise ValidationError(bound.problems)
        assert bound.input is not None and bound.schema is not None, "a project without problems is whole"
        return Calculation(context, bound.input, bound.schema, bound.steps)

    @property
    def evaluator(self) -> Evaluator:
        """Computes expressions that need no row."""
        known = Evaluator if self.optimisations.evaluate_constants else BlindEvaluator
        return known(self.context.timestamp, self.context.period.identifier)

    def input_segment(self, given: Collection[str], periods: Sequence[str] = ()) -> Segment:
        """What is known of the input rows. `given` are the columns of the data, `periods` those whose rows are read."""
        table = self.input.table
        new = new_segment(0, self.input.dataset.id, table.name, self.context.timestamp)
        period = self.context.period.identifier
        varying = {name for name in given if name in self.schema.system} - FROM_THE_ENGINE
        if PERIOD in given and table.temporal_mode == "period" and len(periods) == 1:
            varying, period = varying - {PERIOD}, periods[0]
        columns = {**self.schema.business} | {name: self.schema.system[name] for name in varying}
        return (
            new.with_constants({PERIOD: Constant(STRING, period)}).with_varying(columns).with_nulls(self.schema.columns)
        )

    def keeps(self, is_small: IsSmall, *, needs_working: bool = False) -> tuple[Keep, ...]:
        """The rows that are kept because they are used more than once; the same for all data."""
        if not self.optimisations.keep_rows:
            return ()
        first = self.input_segment(self.schema.system)
        return decide(first, self.input, self.steps, self.evaluator, is_small, needs_working=needs_working)

    @property
    def last(self) -> WorkingSchema:
        """The working dataset after the last step."""
        return self.steps[-1].after if self.steps else self.schema


@dataclass(frozen=True)
class Plan(Calculation):
    """A project bound to one period: its steps, the locations it reads and the locations it writes."""

    project_id: str
    project_version: int
    locations: Mapping[SourceTable, tuple[Location, ...]]
    destinations: Mapping[int, Location]
    """Where each output is written, by seq."""
    warnings: tuple[str, ...] = ()
    """What a user should know before the run."""

    @property
    def kept(self) -> tuple[Keep, ...]:
        """The rows that the run keeps."""
        return self.keeps(lambda source: are_small(self.locations[source]))

    @property
    def outputs(self) -> tuple[Publication, ...]:
        """The outputs of the run, in order."""
        return publications(self.steps)

    @property
    def tables_without_positions(self) -> frozenset[SourceTable]:
        """The tables whose rows get no id."""
        return tables_without_positions(self.input, self.steps)


def make_plan(bound: BoundProject, context: RunContext, locate: Locate, destine: Destine) -> Plan:
    """Resolves every location that a checked project reads and writes."""
    calculation = Calculation.of(bound, context)
    if len(bound.steps) > MAX_STEPS:
        raise fail("InvalidArguments", f"a project has at most {MAX_STEPS} operations, this one {len(bound.steps)}")
    return Plan(
        project_id=bound.head.id,
        project_version=bound.head.version,
        context=calculation.context,
        input=calculation.input,
        schema=calculation.schema,
        steps=calculation.steps,
        locations={source: locate(source) for source in source_tables(calculation.input, calculation.steps)},
        destinations={
            output.seq: _destined(output, calculation.input, destine) for output in publications(calculation.steps)
        },
    )


def _destined(output: Publication, input: SourceTable, destine: Destine) -> Location:
    try:
        return destine(output, input)
    except RunError as error:
        raise RunError(map(output.attribute, error.problems)) from error
