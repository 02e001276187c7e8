"""Finds the locations of a table's rows for a period: choose the resolver and its rule, expand the period, render the
template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tallybook.errors import ProblemError, RunError, did_you_mean, fail
from tallybook.expressions.check import Checker
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import DATE, STRING, ColumnType
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.relative_period import RunPeriod
from tallybook.model.resolver import ANY_LEVEL, PathStrategy, Resolver, Rule, Strategy
from tallybook.resolve.render import render
from tallybook.resolve.targets import path_target, table_target, usable_source

WHEN_TYPES: dict[str, ColumnType] = {
    "period.identifier": STRING,
    "period.level": STRING,
    "period.start_date": DATE,
    "period.end_date": DATE,
    "table.name": STRING,
    "dataset.id": STRING,
}
"""The names that a `when` can read, with their types."""


def pick_resolver(
    dataset_id: str, resolver_id: str | None, overrides: Mapping[str, str], resolvers: Mapping[str, Resolver]
) -> Resolver:
    """Returns the project's override, else the dataset's own resolver, else the default one.

    A resolver that is named but missing or disabled is an error: going on to the next could read the wrong data.
    """
    if dataset_id in overrides:
        return _named(overrides[dataset_id], f"`resolver_overrides` of the project for '{dataset_id}'", resolvers)
    if resolver_id is not None:
        return _named(resolver_id, f"`resolver_id` of dataset '{dataset_id}'", resolvers)
    return _default(dataset_id, resolvers)


def _named(resolver_id: str, named_in: str, resolvers: Mapping[str, Resolver]) -> Resolver:
    resolver = resolvers.get(resolver_id)
    if resolver is None:
        hint = did_you_mean(resolver_id, resolvers)
        raise fail("ResolverNotFound", f"there is no resolver '{resolver_id}', named in {named_in}", hint=hint)
    if resolver.status == "disabled":
        raise fail("ResolverNotFound", f"resolver '{resolver_id}', named in {named_in}, is disabled")
    return resolver


def _default(dataset_id: str, resolvers: Mapping[str, Resolver]) -> Resolver:
    defaults = [resolver for resolver in resolvers.values() if resolver.is_default]
    active = [resolver for resolver in defaults if resolver.status == "active"]
    if len(active) == 1:
        return active[0]
    unnamed = f"dataset '{dataset_id}' names no resolver"
    if active:
        ids = ", ".join(sorted(resolver.id for resolver in active))
        raise fail("ResolverNotFound", f"{unnamed} and more than one is the default: {ids}")
    why = f"the default one, '{defaults[0].id}', is disabled" if defaults else "none is the default"
    raise fail(
        "ResolverNotFound",
        f"{unnamed} and {why}",
        hint=f"give the dataset a `resolver_id`, or the project `resolver_overrides: {{{dataset_id}: …}}`, or one "
        "resolver `is_default: true`",
    )


def when_scope() -> Scope:
    """Returns the scope of a `when`: `period.start_date`, `table.name`, `dataset.id` and so on."""
    tables: dict[str, dict[str, ColumnType]] = {}
    for name, type in WHEN_TYPES.items():
        table, _, column = name.partition(".")
        tables.setdefault(table, {})[column] = type
    return Scope(tuple(ScopeTable(name, columns) for name, columns in tables.items()))


def when_values(period: Period, table_name: str, dataset_id: str) -> dict[str, object]:
    """Returns the values that a `when` reads; dates stay dates, so that they compare as dates."""
    return {
        "period.identifier": period.identifier,
        "period.level": period.level,
        "period.start_date": period.start_date,
        "period.end_date": period.end_date,
        "table.name": table_name,
        "dataset.id": dataset_id,
    }


def evaluate_when(text: str, values: Mapping[str, object], period: RunPeriod, timestamp: datetime) -> bool | None:
    """Returns the result of a `when`; None if it is NULL. `timestamp` is the time that NOW() and TODAY() return."""
    checker = Checker(when_scope())
    typed = checker.check(parse(text))
    if typed is None:
        raise ProblemError(checker.problems)
    columns = {name.partition(".")[2]: value for name, value in values.items()}
    evaluator = Evaluator(timestamp, period, lambda column: columns[column.column])
    result = evaluator.value(typed)
    assert result is None or isinstance(result, bool), "the checker refuses a `when` that is not a condition"
    return result


def match(resolver: Resolver, values: Mapping[str, object], period: RunPeriod, timestamp: datetime) -> Rule:
    """Returns the first rule whose `when` is true. Raises NoRuleMatched with the reason for each rule."""
    reasons = []
    for rule in resolver.rules:
        result = True if rule.when is None else _evaluate(resolver, rule, rule.when, values, period, timestamp)
        if result:
            return rule
        reasons.append(f"rule '{rule.name}': {rule.when} is {'unknown (NULL)' if result is None else 'false'}")
    raise fail(
        "NoRuleMatched",
        f"no rule of resolver '{resolver.id}' fits table '{values['table.name']}' of dataset '{values['dataset.id']}' "
        f"in {values['period.level']} '{values['period.identifier']}'"
        + "".join(f"\n    {reason}" for reason in reasons),
        hint="add a rule without `when` at the end to cover everything else",
    )


def _evaluate(
    resolver: Resolver, rule: Rule, when: str, values: Mapping[str, object], period: RunPeriod, timestamp: datetime
) -> bool | None:
    try:
        return evaluate_when(when, values, period, timestamp)
    except RunError as error:
        problem = error.problem
        message = f"`when` of rule '{rule.name}' of resolver '{resolver.id}': {problem.message}"
        raise RunError([replace(problem, message=message)]) from None


def resolve_all(
    table_name: str,
    dataset_id: str,
    periods: Sequence[Period],
    *,
    calendar: Calendar,
    resolver: Resolver,
    datasources: Mapping[str, DataSource],
    timestamp: datetime,
    root: Path,
) -> tuple[Location, ...]:
    """Returns the locations of a table's rows for several periods, each location once."""
    locations = tuple(
        dict.fromkeys(
            location
            for period in periods
            for location in resolve(
                table_name,
                dataset_id,
                period,
                calendar=calendar,
                resolver=resolver,
                datasources=datasources,
                timestamp=timestamp,
                root=root,
            )
        )
    )
    _refuse_double_reading(locations)
    return locations


def resolve(
    table_name: str,
    dataset_id: str,
    period: Period,
    *,
    calendar: Calendar,
    resolver: Resolver,
    datasources: Mapping[str, DataSource],
    timestamp: datetime,
    root: Path,
) -> tuple[Location, ...]:
    """Returns the locations of a table's rows for a period, in the order of their periods. `timestamp` is the run's,
    which a `when` can read; `root` is the workspace folder."""
    rule = match(resolver, when_values(period, table_name, dataset_id), RunPeriod(period, calendar), timestamp)
    source = usable_source(rule.strategy.datasource_id, datasources, root)
    locations = tuple(
        Location(
            source=source,
            target=_target(
                rule.strategy,
                source,
                partial(render, period=rendered_for, table_name=table_name, dataset_id=dataset_id),
                root,
            ),
            period=rendered_for.identifier if rendered_for else None,
            resolver=resolver.id,
            rule=rule.name,
            on_missing=rule.on_missing,
            **_partitioning(rule.strategy),
        )
        for rendered_for in expand(rule.data_level, period, calendar)
    )
    _refuse_double_reading(locations)
    return locations


def expand(data_level: str, period: Period, calendar: Calendar) -> tuple[Period | None, ...]:
    """Returns the periods to render a rule's location for: None if all periods share one location.

    Data finer than the run's period has one location for each part of it, and none outside of it. Data coarser than the
    run's period (the year's file in a month's run) has one location: that of the period around it.
    """
    if data_level == ANY_LEVEL:
        return (None,)
    if data_level == period.level:
        return (period,)
    if calendar.finer(data_level, period.level):
        return calendar.children(period, data_level)
    return (calendar.containing(period, data_level),)


def _target(strategy: Strategy, source: DataSource, rendered: Callable[[str], str], root: Path) -> str:
    if not isinstance(strategy, PathStrategy):
        schema = rendered(strategy.schema_) if strategy.schema_ else None
        return table_target(source, rendered(strategy.table), schema, root)
    if source.path_prefix is None:
        raise fail("InvalidArguments", f"datasource '{source.id}' ({source.type}) has tables, not paths")
    return path_target(rendered(strategy.path), root, source.path_prefix)


def _partitioning(strategy: Strategy) -> dict[str, Any]:
    """Returns the fields of a location that say in which ranges its table is read."""
    if isinstance(strategy, PathStrategy):
        return {}
    return {"partition_column": strategy.partition_column, "partitions": strategy.partitions}


def _refuse_double_reading(locations: Sequence[Location]) -> None:
    """Raises InvalidArguments if two periods have the same location, whose rows would be read twice."""
    seen: dict[str, Location] = {}
    for location in locations:
        first = seen.setdefault(location.target, location)
        if first is not location:
            raise fail(
                "InvalidArguments",
                f"rule '{location.rule}' of resolver '{location.resolver}' gives '{first.period}' and "
                f"'{location.period}' the same location, {location.target}: its rows would be read twice",
                hint="put a token that names the period, such as {{period}}, into it, or set `data_level: any`",
            )
