"""Reads a plan and says it: as a document for programs, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tallybook.engine.plan import Plan
from tallybook.expressions.show import show
from tallybook.model.columns import ColumnType
from tallybook.operations.base import Step


def plan_document(plan: Plan) -> dict[str, Any]:
    """What a run would do: versions, places, the schema after each operation, outputs."""
    return {
        "project": plan.project_id,
        "project_version": plan.project_version,
        "period": plan.context.period.model_dump(mode="json"),
        "as_of": plan.context.as_of.isoformat(),
        "input": f"{plan.input.dataset.id} v{plan.input.dataset.version}",
        "schema": _types(plan.schema.columns),
        "reads": [
            {
                "dataset": source.dataset.id,
                "dataset_version": source.dataset.version,
                "table": source.table.name,
                "temporal_mode": source.table.temporal_mode,
                "locations": [
                    {"place": str(place), "period": place.period, "resolver": place.resolver, "rule": place.rule}
                    for place in locations
                ],
            }
            for source, locations in plan.locations.items()
        ],
        "operations": [_step_document(step, plan) for step in plan.steps],
        "warnings": list(plan.warnings),
    }


def _step_document(step: Step, plan: Plan) -> dict[str, Any]:
    document: dict[str, Any] = {
        "seq": step.seq,
        "name": step.name,
        "type": step.type,
        "selector": show(step.selector.node) if step.selector else None,
        "reads": [str(source) for source in step.sources],
        "adds": _types(_added(step)),
        "schema": _types(step.after.columns),
    }
    if step.publishes is not None:
        document |= {
            "destination": str(plan.destinations[step.seq]),
            "mode": step.publishes.mode,
            "columns": list(step.publishes.columns),
            "include_deleted": step.publishes.include_deleted,
            "register_as_dataset": step.publishes.register_as,
        }
    return document


def _added(step: Step) -> dict[str, ColumnType]:
    return {name: type for name, type in step.after.columns.items() if name not in step.before.columns}


def _types(columns: Mapping[str, ColumnType]) -> dict[str, str]:
    return {name: str(type) for name, type in columns.items()}


def plan_text(plan: Plan) -> Iterator[str]:
    """The plan, line by line."""
    period = plan.context.period
    yield f"project {plan.project_id} v{plan.project_version} for {period.level} {period.identifier}"
    yield f"  {period.start_date} to {period.end_date}, as of {plan.context.as_of}"
    yield ""
    yield "reads"
    for source, locations in plan.locations.items():
        yield f"  {source}, {_mode(source.table.temporal_mode)}"
        for place in locations:
            rule = f"   (resolver {place.resolver}, rule '{place.rule}')" if place.resolver else ""
            yield f"    {place}{rule}"
    yield ""
    yield "starts with " + _columns(plan.schema.business)
    for step in plan.steps:
        yield ""
        yield from _step_text(step, plan)
    if plan.warnings:
        yield ""
    for warning in plan.warnings:
        yield f"warning: {warning}"


def _mode(mode: str) -> str:
    return {"period": "rows of the period", "bitemporal": "rows valid as of the date", "none": "all rows"}[mode]


def _step_text(step: Step, plan: Plan) -> Iterator[str]:
    rows = show(step.selector.node) if step.selector else "all rows that are not deleted"
    yield f"{step.seq}. {step.type}: {step.name}"
    if step.appends is None:
        yield f"   rows: {rows}"
    for source in step.sources:
        yield f"   reads: {source}"
    columns = step.column_by_path
    for path, typed in step.expressions.items():
        if path in columns:
            yield f"   {columns[path]} = {show(typed.node)}"
    if _added(step):
        yield f"   new: {_columns(_added(step))}"
    if step.publishes is not None:
        yield f"   writes: {plan.destinations[step.seq]} ({step.publishes.mode})"
        yield f"   columns: {', '.join(step.publishes.columns)}"
        if step.publishes.register_as:
            yield f"   registers: {step.publishes.register_as}"


def _columns(columns: Mapping[str, ColumnType]) -> str:
    return ", ".join(f"{name} {type}" for name, type in columns.items())
