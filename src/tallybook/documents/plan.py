"""The document of `plan`: versions, locations, the schema after each operation, outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tallybook.documents.base import Document
from tallybook.documents.lifecycle import PeriodDates
from tallybook.documents.problems import ProblemDocument
from tallybook.errors import Problem
from tallybook.expressions.show import show
from tallybook.expressions.tree import Named, walk
from tallybook.model.columns import ColumnType
from tallybook.model.written import written
from tallybook.operations.flow import live_columns

if TYPE_CHECKING:
    from tallybook.engine.keeping import Keep
    from tallybook.engine.plan import Plan, RunContext
    from tallybook.model.location import Location
    from tallybook.model.run import Run
    from tallybook.operations.base import Step
    from tallybook.operations.schema import SourceTable

Columns = dict[str, str]
"""The types of columns, by name."""


class PlannedLocation(Document):
    """Where rows of a table are read."""

    location: str
    """The format, and the path or the name of the table."""
    period: str | None
    """The period it was resolved for, or that a registered version was written for; null if it serves all periods."""
    dataset_version: int | None
    """The version of the registered dataset whose rows these are; null for other rows."""
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
    source_period: str | None
    """The period it is read for, relative to that of the run, such as `prior`; null for the run's own."""
    periods: tuple[str, ...]
    """The periods whose rows are read; none if its rows do not belong to periods."""
    as_of: date | None
    """The date its rows must be valid on, if they have such dates; null if each working row has its own."""
    locations: tuple[PlannedLocation, ...]
    """Where its rows are."""

    @classmethod
    def of(cls, source: SourceTable, locations: tuple[Location, ...], context: RunContext) -> PlannedTable:
        mode = source.table.temporal_mode
        return cls(
            dataset=source.dataset.id,
            dataset_version=source.dataset.version,
            table=source.table.name,
            temporal_mode=mode,
            source_period=None if source.period is None else str(source.period),
            periods=tuple(period.identifier for period in context.periods_of(source)) if mode == "period" else (),
            as_of=context.as_of_for(source) if mode == "bitemporal" else None,
            locations=tuple(
                PlannedLocation(
                    location=str(location),
                    period=location.period,
                    dataset_version=location.dataset_version,
                    resolver=location.resolver,
                    rule=location.rule,
                )
                for location in locations
            ),
        )


class PlannedRows(Document):
    """Rows of a table that an operation joins or appends: all of them, some of them, or one for each group."""

    table: str
    """The dataset with its version, the table, and the period it is read for."""
    selector: str | None
    """The condition on the rows; null for all rows."""
    group_by: tuple[str, ...]
    """The columns that the rows are grouped by first."""
    aggregations: dict[str, str]
    """The expression of each column that the groups get; empty if the rows are not grouped."""

    @classmethod
    def fields_of(cls, rows: Any) -> dict[str, Any]:
        """Returns the values of the fields, for rows of a source that a step has."""
        grouping = rows.grouping
        return {
            "table": str(rows.table),
            "selector": None if rows.condition is None else show(rows.condition.node),
            "group_by": () if grouping is None else tuple(key.column for key in grouping.keys),
            "aggregations": {}
            if grouping is None
            else {name: show(typed.node) for name, typed in grouping.results.items()},
        }


class PlannedJoin(PlannedRows):
    """A table that an operation joins to its rows."""

    alias: str
    """The name that expressions read its columns by."""
    on: str
    """The condition of a match."""
    valid: str | None
    """The condition of the dates on which a row is valid, if each working row has its own date."""


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
    joins: tuple[PlannedJoin, ...]
    """The tables it joins or looks up, each with its condition."""
    appends: PlannedRows | None
    """The rows that it appends to the working rows."""
    sets: dict[str, str]
    """The expression of each column it computes."""
    tests: str | None
    """The condition that it tests."""
    uses: dict[str, str]
    """Its other arguments, by their keys: groups, amounts, drivers."""
    deletes: bool
    """True if it marks rows as deleted: later operations do not see them."""
    adds: Columns
    """The types of the columns it adds to the working rows."""
    schema_: Columns = Field(alias="schema")
    """The columns of the working rows after it, with their types."""


class PlannedOutput(PlannedOperation):
    """An output of the run."""

    destination: str
    """Where it writes."""
    mode: str
    """`overwrite`, `append`, `error` or `replace_period`."""
    replaces_periods: tuple[str, ...]
    """The periods whose rows it replaces, with `replace_period`. If its rows turn out to be of shorter periods inside
    the period of the run, it replaces these, too."""
    columns: tuple[str, ...]
    """The columns it writes, by the names that they get."""
    order_by: tuple[str, ...]
    """The columns that its rows are sorted by; a minus before a name means descending."""
    leaves_out: tuple[str, ...]
    """The columns of the working rows that it does not write."""
    partition_by: tuple[str, ...]
    """The columns by whose values it divides its rows among folders."""
    include_deleted: bool
    """True if it writes deleted rows, too."""
    register_as_dataset: str | None
    """The dataset that its rows become a version of."""


class PlannedKeep(Document):
    """Rows that are computed once and kept, because several operations use them."""

    before: int
    """The operation before which they are kept."""
    made_by: int
    """The operation that made them; 0 for input rows. If it is the same as `before`, the groups of its aggregates with
    OVER are kept."""
    columns: tuple[str, ...]
    """The columns that later operations may need; of groups, those of OVER."""
    reason: str
    """Why computing them again would cost more."""


class PlannedKeptTable(Document):
    """A small table that is joined. Its rows are computed once, because several operations use the joined rows."""

    operation: int
    """The operation that joins it."""
    alias: str
    """The name by which expressions read it."""
    reason: str
    """Why computing it again would cost more."""


class PlannedParameter(Document):
    """A parameter of the project."""

    type: str
    """Its type."""
    value: str
    """Its value, as text."""


class StaleRun(Document):
    """The last run of the project for the period, whose inputs were written anew since."""

    run_id: str
    """The run."""
    written_anew: tuple[str, ...]
    """What was written anew, in words."""


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
    environment: str | None = None
    """The environment of the workspace; null for the workspace without one."""
    parameters: dict[str, PlannedParameter]
    """The parameters of the project with their values, by name."""
    input: str
    """The input dataset and its version."""
    schema_: Columns = Field(alias="schema")
    """The columns of the working rows before the first operation, with their types."""
    reads: tuple[PlannedTable, ...]
    """The tables that are read."""
    conditions: dict[str, str]
    """The named selectors that operations use, by name."""
    operations: tuple[PlannedOutput | PlannedOperation, ...]
    """The operations, in their order."""
    one_pass: tuple[tuple[int, ...], ...] = ()
    """The aggregates that are computed in one pass, because they have the same results over the same rows."""
    keeps: tuple[PlannedKeep, ...]
    """The rows that are kept."""
    kept_tables: tuple[PlannedKeptTable, ...]
    """The small joined tables that are computed once."""
    warnings: tuple[str, ...]
    """What a user should know before the run."""
    refused: ProblemDocument | None
    """Why a run would be refused now; null if it would start."""
    stale: StaleRun | None = None
    """The last run for the period, if its inputs were written anew since; null otherwise."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        refused: Problem | None,
        stale: tuple[Run, tuple[str, ...]] | None = None,
        environment: str | None = None,
    ) -> PlanDocument:
        return cls(
            project=plan.project_id,
            project_version=plan.project_version,
            period=PeriodDates(**plan.context.period.model_dump()),
            as_of=plan.context.as_of,
            environment=environment,
            parameters={
                name: PlannedParameter(type=str(plan.parameter_types[name]), value=written(value))
                for name, value in plan.context.parameters.items()
            },
            input=f"{plan.input.dataset.id} v{plan.input.dataset.version}",
            schema=_types(plan.schema.columns),
            reads=tuple(
                PlannedTable.of(source, locations, plan.context) for source, locations in plan.locations.items()
            ),
            conditions=_conditions(plan),
            operations=tuple(_operation(step, plan) for step in plan.steps),
            one_pass=plan.passes(),
            keeps=_keeps(plan),
            kept_tables=tuple(
                PlannedKeptTable(operation=kept.seq, alias=kept.alias, reason=kept.reason) for kept in plan.tables_kept
            ),
            warnings=plan.warnings,
            refused=ProblemDocument.of(refused) if refused else None,
            stale=StaleRun(run_id=stale[0].id, written_anew=stale[1]) if stale else None,
        )


def _arguments(step: Step) -> Iterator[tuple[str, str]]:
    """What it is told beside its selector, its joins, the columns it computes and the condition it tests."""
    of_sources = {f"{rows.grouping_path}.group_by" for rows in step.source_rows} | step.source_expressions.keys()
    yield from ((path, text) for path, text in step.settings.items() if path not in of_sources)
    shown = [step.selector, *(condition for join in step.joins for condition in join.conditions)]
    shown += [] if step.tests is None else [step.tests.condition]
    for path, typed in step.expressions.items():
        is_shown = path in step.column_by_path or path in of_sources or any(typed is one for one in shown)
        if not is_shown:
            yield path, show(typed.node)


def _joins(step: Step) -> Iterator[PlannedJoin]:
    main = step.before.table
    for lookup in step.lookups:
        on = " AND ".join(f"{main}.{own} = {lookup.alias}.{theirs}" for own, theirs in lookup.pairs)
        rows: dict[str, Any] = {"table": str(lookup.source), "selector": None, "group_by": (), "aggregations": {}}
        yield PlannedJoin(**rows, alias=lookup.alias, on=on, valid=None)
    for join in step.joins:
        valid = None if join.valid is None else show(join.valid.node)
        yield PlannedJoin(**PlannedRows.fields_of(join.rows), alias=join.alias, on=show(join.on.node), valid=valid)


def _conditions(plan: Plan) -> dict[str, str]:
    nodes = [node for step in plan.steps for typed in step.expressions.values() for node in walk(typed.node)]
    used = {node.name: node.body for node in nodes if isinstance(node, Named) and node.body is not None}
    return {name: show(body) for name, body in used.items()}


def _operation(step: Step, plan: Plan) -> PlannedOperation:
    columns = step.column_by_path
    added = {name: type for name, type in step.after.columns.items() if name not in step.before.columns}
    planned = PlannedOperation(
        seq=step.seq,
        name=step.name,
        type=step.type,
        selector=show(step.selector.node) if step.selector else None,
        reads=tuple(map(str, step.sources)),
        joins=tuple(_joins(step)),
        appends=PlannedRows(**PlannedRows.fields_of(step.appends)) if step.appends else None,
        sets={columns[path]: show(typed.node) for path, typed in step.row_expressions.items() if path in columns},
        tests=show(step.tests.condition.node) if step.tests else None,
        uses={path.removeprefix("arguments."): text for path, text in _arguments(step)},
        deletes=step.deletes_rows,
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
        replaces_periods=replaced.planned if (replaced := plan.replaced_periods(output)) else (),
        columns=tuple(output.columns),
        leaves_out=tuple(name for name in step.before.columns if name not in output.working_columns.values()),
        partition_by=output.partition_by,
        order_by=tuple(f"{'-' * key.descending}{key.column}" for key in output.order_by),
        include_deleted=output.include_deleted,
        register_as_dataset=output.register_as,
    )


def _keeps(plan: Plan) -> tuple[PlannedKeep, ...]:
    live = live_columns(plan.steps, ())
    return tuple(
        PlannedKeep(
            before=plan.steps[keep.step].seq,
            made_by=keep.made_by,
            columns=_kept_columns(plan.steps[keep.step], keep, live[keep.step]),
            reason=keep.reason,
        )
        for keep in plan.kept
    )


def _kept_columns(step: Step, keep: Keep, live: Collection[str]) -> tuple[str, ...]:
    if keep.segment is None:
        return tuple(dict.fromkeys(key.column for over in step.overs for key in over.keys))
    return tuple(name for name in step.before.columns if name in live)


def _types(columns: Mapping[str, ColumnType]) -> Columns:
    return {name: str(type) for name, type in columns.items()}
