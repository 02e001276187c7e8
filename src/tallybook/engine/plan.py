"""The plan of a run, as data, with the constants of the run. `documents.plan` shows it and `execute` runs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from tallybook.engine.keeping import Deciding, Droppable, IsSmall, Keep, KeptTable, none_droppable
from tallybook.errors import RunError, ValidationError, fail
from tallybook.expressions.evaluate import BlindEvaluator, Evaluator
from tallybook.expressions.parameters import Parameters
from tallybook.model.columns import OPERATION_SEQ, PERIOD, SOURCE_DATASET_ID, SOURCE_TABLE, STRING, ColumnType
from tallybook.model.location import Location
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import GREGORIAN, Calendar, Period
from tallybook.model.relative_period import RunPeriod
from tallybook.model.replaced_periods import ReplacedPeriods
from tallybook.operations.base import SharedTable, Step
from tallybook.operations.flow import publications, shared_tables, source_tables
from tallybook.operations.one_pass import find_passes
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.project.bind import BoundProject
from tallybook.rows.ids import MAX_STEPS
from tallybook.rows.segments import Constant, Segment, new_segment
from tallybook.storage.inputs import are_small, have_unique_keys

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
    parameters: Parameters = field(default_factory=dict)
    calendar: Calendar = GREGORIAN
    """The calendar on which the periods around that of the run are counted."""

    @property
    def run_period(self) -> RunPeriod:
        """The period, with the periods around it."""
        return RunPeriod(self.period, self.calendar)

    def periods_of(self, source: SourceTable) -> tuple[Period, ...]:
        """The periods whose rows are read of a table. Raises PeriodNotFound if the calendar does not have them."""
        return source.periods(self.run_period)

    def as_of_for(self, source: SourceTable) -> date | None:
        """The date on which the rows of a bitemporal table must be valid; None if each working row has its own."""
        if source.as_of == "row":
            return None
        period = self.run_period.relative(source.period)[0]
        if source.as_of == "period_end":
            return period.end_date
        return self.as_of if source.period is None else period.start_date


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
    reuse_joins: bool = True
    """Join a table once for several operations as long as its keys stay the same, and compute small ones once."""
    one_pass: bool = True
    """Compute aggregates with the same results over the same rows in one pass."""
    drop_joins: bool = True
    """Do not join a large table for those uses of the rows that read nothing of it."""
    prepare_joins: bool = True
    """Find out before the first step which joined tables have unique keys, join those without a check, and fetch small
    tables."""


@dataclass(frozen=True)
class Calculation:
    """Checked steps over one working dataset, for one period."""

    context: RunContext
    input: SourceTable
    schema: WorkingSchema
    """The working dataset before the first step."""
    steps: tuple[Step, ...]
    min_rows: int = field(default=0, kw_only=True)
    """The fewest input rows; with fewer the run fails."""
    optimisations: Optimisations = field(default=Optimisations(), kw_only=True)

    @classmethod
    def of(cls, bound: BoundProject, context: RunContext) -> Calculation:
        """Returns the calculation of a bound project. Raises ValidationError if the project has problems."""
        if bound.problems:
            raise ValidationError(bound.problems)
        assert bound.input is not None and bound.schema is not None, "a project without problems is whole"
        return Calculation(context, bound.input, bound.schema, bound.steps, min_rows=bound.head.input.min_rows)

    @property
    def evaluator(self) -> Evaluator:
        """Computes expressions that need no row."""
        known = Evaluator if self.optimisations.evaluate_constants else BlindEvaluator
        return known(self.context.timestamp, self.context.run_period, parameters=self.context.parameters)

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

    @property
    def shared(self) -> Mapping[str, SharedTable]:
        """The tables that are joined once for several steps, by alias."""
        return shared_tables(self.steps) if self.optimisations.reuse_joins else {}

    def keeps(
        self,
        is_small: IsSmall,
        in_passes: Collection[int] = (),
        droppable: Droppable = none_droppable,
        *,
        needs_working: bool = False,
    ) -> tuple[Keep, ...]:
        """The rows that are kept because they are used more than once. `in_passes` are the aggregates whose groups a
        pass keeps; `droppable` returns the tables of a step that need not be joined if nothing reads them."""
        if not self.optimisations.keep_rows:
            return ()
        first = self.input_segment(self.schema.system)
        deciding = Deciding(
            self.input,
            self.steps,
            self.evaluator,
            is_small,
            in_passes,
            droppable,
            shared=self.shared,
            needs_working=needs_working,
        )
        return deciding.keeps(first)

    def passes(self, *, needs_working: bool = False) -> tuple[tuple[int, ...], ...]:
        """The aggregates that can be computed in one pass over the rows that they group, by seq; the same for all data.
        An execution that may start no jobs of its own computes each of them alone."""
        if not self.optimisations.one_pass:
            return ()
        first, wanted = self.input_segment(self.schema.system), self.last.columns if needs_working else ()
        return find_passes(first, self.input, self.steps, self.evaluator, wanted)

    def kept_tables(self, is_small: IsSmall) -> tuple[KeptTable, ...]:
        """The small joined tables that are read once; the same for all data."""
        if not self.optimisations.reuse_joins:
            return ()
        first = self.input_segment(self.schema.system)
        return Deciding(self.input, self.steps, self.evaluator, is_small).kept_tables(first)

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
    parameter_types: Mapping[str, ColumnType] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What a user should know before the run."""

    @property
    def kept(self) -> tuple[Keep, ...]:
        """The rows that the run keeps."""
        in_passes = {seq for seqs in self.passes() for seq in seqs}
        return self.keeps(self.is_small, in_passes, self._droppable)

    @property
    def tables_kept(self) -> tuple[KeptTable, ...]:
        """The small joined tables that the run reads once."""
        return self.kept_tables(self.is_small)

    def is_small(self, source: SourceTable) -> bool:
        """True if one task can process all rows of a table."""
        return are_small(self.locations[source])

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        """True if it is known that no two rows that a run reads have the same values in these columns."""
        locations = self.locations[source]
        return have_unique_keys(locations, source.table, columns, periods_read(source, locations, self.context))

    def _droppable(self, step: Step) -> Collection[str]:
        """The tables that a run need not join if nothing reads them. It fetches small tables, so their keys are taken
        to be unique until then."""
        if not (self.optimisations.drop_joins and self.optimisations.prepare_joins):
            return ()
        return step.droppable(
            lambda rows, join: self.is_small(rows.table) or rows.are_unique_by(join.key_columns, self)
        )

    @property
    def outputs(self) -> tuple[Publication, ...]:
        """The outputs of the run, in order."""
        return publications(self.steps)

    def replaced_periods(self, output: Publication) -> ReplacedPeriods | None:
        """The periods whose rows an output replaces; None unless its mode is `replace_period`."""
        if output.mode != "replace_period":
            return None
        appended = (step.appends.table for step in self.steps if step.appends is not None and step.seq < output.seq)
        read = (
            name
            for source in (self.input, *appended)
            for name in periods_read(source, self.locations[source], self.context)
        )
        return ReplacedPeriods.of_run(NestedPeriod(self.context.period, self.context.calendar), read)


def periods_read(source: SourceTable, locations: Sequence[Location], context: RunContext) -> tuple[str, ...]:
    """Returns the periods that the locations of a table are read for, if they say so; else the child periods that they
    were expanded to; else the periods that the table is read for.

    A location of a longer period (the file of a year in the run of a month) has rows of several periods, so its rows
    must have a period column.
    """
    named = dict.fromkeys(name for location in locations for name in location.periods)
    if named:
        return tuple(named)
    rendered = [location.period for location in locations if location.period is not None]
    parts = [context.calendar.period(name) for name in dict.fromkeys(rendered)]
    names: list[str] = []
    for period in context.periods_of(source):
        inside = [part.identifier for part in parts if period.contains(part)]
        names += inside or [period.identifier]
    return tuple(names)


def make_plan(bound: BoundProject, context: RunContext, locate: Locate, destine: Destine) -> Plan:
    """Resolves every location that a checked project reads and writes."""
    calculation = Calculation.of(bound, context)
    if len(bound.steps) > MAX_STEPS:
        raise fail("InvalidArguments", f"a project has at most {MAX_STEPS} operations, this one {len(bound.steps)}")
    destinations = {
        output.seq: _destined(output, calculation.input, destine) for output in publications(calculation.steps)
    }
    return Plan(
        project_id=bound.head.id,
        project_version=bound.head.version,
        parameter_types={name: parameter.type for name, parameter in bound.head.parameters.items()},
        context=calculation.context,
        input=calculation.input,
        schema=calculation.schema,
        steps=tuple(_for_people(step, destinations) for step in calculation.steps),
        min_rows=calculation.min_rows,
        locations={
            source: _located(source, calculation, locate)
            for source in source_tables(calculation.input, calculation.steps)
        },
        destinations=destinations,
    )


def _for_people(step: Step, destinations: Mapping[int, Location]) -> Step:
    """Returns an output without the system columns if people read its files and the user did not choose columns."""
    output = step.publishes
    if output is None or not destinations[output.seq].source.for_people:
        return step
    return replace(step, publishes=output.as_read_by_people())


def _located(source: SourceTable, calculation: Calculation, locate: Locate) -> tuple[Location, ...]:
    """Finds the locations of a table. A failure to read another period is a problem of the operation that asks for it,
    also if the period only gives the date of a bitemporal table."""
    try:
        calculation.context.as_of_for(source)
        return locate(source)
    except RunError as error:
        if source.period is None:
            raise
        step = next(step for step in calculation.steps if source in step.sources)
        raise RunError(map(step.attribute, error.problems)) from error


def _destined(output: Publication, input: SourceTable, destine: Destine) -> Location:
    try:
        return destine(output, input)
    except RunError as error:
        raise RunError(map(output.attribute, error.problems)) from error
