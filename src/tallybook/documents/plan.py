"""The document of `plan`: versions, locations, the schema after each operation, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from pydantic import Field

from tallybook.documents.base import Document
from tallybook.documents.lifecycle import PeriodDates
from tallybook.documents.problems import ProblemDocument
from tallybook.errors import Problem
from tallybook.expressions.show import show
from tallybook.model.columns import ColumnType
from tallybook.operations.flow import live_columns

if TYPE_CHECKING:
    from tallybook.engine.plan import Plan
    from tallybook.model.location import Location
    from tallybook.operations.base import Step
    from tallybook.operations.schema import SourceTable

Columns = dict[str, str]
"""The types of columns, by name."""


class PlannedLocation(Document):
    """Where rows of a table are read."""

    location: str
    """The format, and the path or the name of the table."""
    period: str | None
    """The period it was resolved for; null if it serves all periods."""
    resolver: str | None
    """The resolver that found it."""
    rule: str | None
    """The rule of the resolver."""


class PlannedTable(Document):
    """A table that the run reads."""

    dataset: str
    """The id of its dataset."""
    dataset_version: int
    """The version of the dataset."""
    table: str
    """The name of the table."""
    temporal_mode: str
    """Which of its rows are read: `period`, `bitemporal` or `none`."""
    locations: tuple[PlannedLocation, ...]
    """Where its rows are."""

    @classmethod
    def of(cls, source: SourceTable, locations: tuple[Location, ...]) -> PlannedTable:
        return cls(
            dataset=source.dataset.id,
            dataset_version=source.dataset.version,
            table=source.table.name,
            temporal_mode=source.table.temporal_mode,
            locations=tuple(
                PlannedLocation(
                    location=str(location), period=location.period, resolver=location.resolver, rule=location.rule
                )
                for location in locations
            ),
        )


class PlannedOperation(Document):
    """An operation of the run."""

    seq: int
    """Its number."""
    name: str
    """Its name."""
    type: str
    """Its type."""
    selector: str | None
    """The condition on the rows it changes; null for all rows that are not deleted."""
    reads: tuple[str, ...]
    """The tables it joins, looks up or appends."""
    appends: str | None
    """The table whose rows it appends to the working rows."""
    sets: dict[str, str]
    """The expression of each column it computes."""
    adds: Columns
    """The types of the columns it adds to the working rows."""
    schema_: Columns = Field(alias="schema")
    """The columns of the working rows after it, with their types."""


class PlannedOutput(PlannedOperation):
    """An output of the run."""

    destination: str
    """Where it writes."""
    mode: str
    """`overwrite` or `append`."""
    columns: tuple[str, ...]
    """The columns it writes."""
    include_deleted: bool
    """True if it writes deleted rows, too."""
    register_as_dataset: str | None
    """The dataset that its rows become a version of."""


class PlannedKeep(Document):
    """Rows that are computed once and kept, because several operations use them."""

    before: int
    """The operation before which they are kept."""
    made_by: int
    """The operation that made them; 0 for input rows."""
    columns: tuple[str, ...]
    """The columns that later operations may need."""
    reason: str
    """Why computing them again would cost more."""


class PlanDocument(Document):
    """What a run would do."""

    project: str
    """The id of the project."""
    project_version: int
    """The version of the project."""
    period: PeriodDates
    """The period of the run."""
    as_of: date
    """The date bitemporal data is read at."""
    input: str
    """The input dataset and its version."""
    schema_: Columns = Field(alias="schema")
    """The columns of the working rows before the first operation, with their types."""
    reads: tuple[PlannedTable, ...]
    """The tables that are read."""
    operations: tuple[PlannedOutput | PlannedOperation, ...]
    """The operations, in their order."""
    keeps: tuple[PlannedKeep, ...]
    """The rows that are kept."""
    warnings: tuple[str, ...]
    """What a user should know before the run."""
    refused: ProblemDocument | None
    """Why a run would be refused now; null if it would start."""

    @classmethod
    def of(cls, plan: Plan, refused: Problem | None) -> PlanDocument:
        return cls(
            project=plan.project_id,
            project_version=plan.project_version,
            period=PeriodDates(**plan.context.period.model_dump()),
            as_of=plan.context.as_of,
            input=f"{plan.input.dataset.id} v{plan.input.dataset.version}",
            schema=_types(plan.schema.columns),
            reads=tuple(PlannedTable.of(source, locations) for source, locations in plan.locations.items()),
            operations=tuple(_operation(step, plan) for step in plan.steps),
            keeps=_keeps(plan),
            warnings=plan.warnings,
            refused=ProblemDocument.of(refused) if refused else None,
        )


def _operation(step: Step, plan: Plan) -> PlannedOperation:
    columns = step.column_by_path
    added = {name: type for name, type in step.after.columns.items() if name not in step.before.columns}
    planned = PlannedOperation(
        seq=step.seq,
        name=step.name,
        type=step.type,
        selector=show(step.selector.node) if step.selector else None,
        reads=tuple(map(str, step.sources)),
        appends=str(step.appends) if step.appends else None,
        sets={columns[path]: show(typed.node) for path, typed in step.expressions.items() if path in columns},
        adds=_types(added),
        schema=_types(step.after.columns),
    )
    output = step.publishes
    if output is None:
        return planned
    return PlannedOutput(
        **planned.model_dump(by_alias=True),
        destination=str(plan.destinations[step.seq]),
        mode=output.mode,
        columns=tuple(output.columns),
        include_deleted=output.include_deleted,
        register_as_dataset=output.register_as,
    )


def _keeps(plan: Plan) -> tuple[PlannedKeep, ...]:
    live = live_columns(plan.steps, ())
    return tuple(
        PlannedKeep(
            before=plan.steps[keep.step].seq,
            made_by=keep.made_by,
            columns=tuple(name for name in plan.steps[keep.step].before.columns if name in live[keep.step]),
            reason=keep.reason,
        )
        for keep in plan.kept
    )


def _types(columns: Mapping[str, ColumnType]) -> Columns:
    return {name: str(type) for name, type in columns.items()}
