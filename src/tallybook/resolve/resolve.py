"""From a table and a period to the places its rows lie: match → expand → render."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from tallybook.errors import fail
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.resolver import PathStrategy, Resolver, Rule, Strategy
from tallybook.resolve.expand import expand
from tallybook.resolve.locate import path_target, table_target, usable_source
from tallybook.resolve.match import facts, match
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
    """The locations of a table's rows for a period, in the order of their periods. `timestamp` is the run's, which a
    `when` can read; `root` is the workspace folder."""
    rule = match(resolver, facts(period, table_name, dataset_id), timestamp)
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


def _target(strategy: Strategy, source: DataSource, rendered: Callable[[str], str], root: Path) -> str:
    if not isinstance(strategy, PathStrategy):
        schema = rendered(strategy.schema_) if strategy.schema_ else None
        return table_target(source, rendered(strategy.table), schema, root)
    if source.path_prefix is None:
        raise fail("InvalidArguments", f"datasource '{source.id}' ({source.type}) has tables, not paths")
    return path_target(rendered(strategy.path), root, source.path_prefix)


def _refuse_double_reading(locations: Sequence[Location], rule: Rule) -> None:
    """Two periods with one place would read its rows twice."""
    seen: dict[str, Location] = {}
    for location in locations:
        first = seen.setdefault(location.target, location)
        if first is not location:
            raise fail(
                "InvalidArguments",
                f"rule '{rule.name}' of resolver '{location.resolver}' gives '{first.period}' and '{location.period}' "
                f"the same place, {location.target}: its rows would be read twice",
                hint=f"put a token of the {rule.data_level} such as {{{{period}}}} into it, or say `data_level: any`",
            )
