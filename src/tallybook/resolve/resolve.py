"""Finds the locations of a table's rows for a period: match a rule, expand the period, render the template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from tallybook.errors import fail
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.resolver import ANY_LEVEL, PathStrategy, Resolver, Rule, Strategy
from tallybook.resolve.locate import path_target, table_target, usable_source
from tallybook.resolve.match import match, when_values
from tallybook.resolve.render import render


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
    rule = match(resolver, when_values(period, table_name, dataset_id), timestamp)
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
        )
        for rendered_for in expand(rule.data_level, period, calendar)
    )
    _refuse_double_reading(locations, rule)
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


def _refuse_double_reading(locations: Sequence[Location], rule: Rule) -> None:
    """Raises InvalidArguments if two periods have the same location, whose rows would be read twice."""
    seen: dict[str, Location] = {}
    for location in locations:
        first = seen.setdefault(location.target, location)
        if first is not location:
            raise fail(
                "InvalidArguments",
                f"rule '{rule.name}' of resolver '{location.resolver}' gives '{first.period}' and '{location.period}' "
                f"the same location, {location.target}: its rows would be read twice",
                hint=f"put a token that names the {rule.data_level}, such as {{{{period}}}}, into it, or set "
                "`data_level: any`",
            )
