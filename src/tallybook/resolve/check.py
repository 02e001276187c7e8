"""Checks a rule of a resolver before any run. The `path` of a problem starts at the rule; the caller adds the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tallybook.errors import Problem, did_you_mean
from tallybook.model.datasource import DataSource
from tallybook.model.period import Calendar
from tallybook.model.resolver import ANY_LEVEL, PathStrategy, Rule
from tallybook.resolve.render import check_fit, check_template
from tallybook.source import SourceText

TextAt = Callable[[tuple[str, ...]], SourceText | None]
"""Returns a text of the rule with its place in a file, by its path in the rule; None if the file is not known."""


def check_rule(
    rule: Rule, calendar: Calendar, datasources: Mapping[str, DataSource], text_at: TextAt = lambda _path: None
) -> list[Problem]:
    """Returns every problem of a rule except those of its `when`. A disabled datasource is not a problem, because other
    rules may still serve a run."""
    return [
        *_check_level(rule, calendar),
        *_check_source(rule, datasources),
        *_check_templates(rule, calendar, text_at),
    ]


def _check_level(rule: Rule, calendar: Calendar) -> Iterator[Problem]:
    levels = (*calendar.level_names, ANY_LEVEL)
    if rule.data_level not in levels:
        message = f"calendar '{calendar.id}' has no level '{rule.data_level}', the `data_level` of rule '{rule.name}'"
        yield Problem("CalendarNotFound", message, hint=did_you_mean(rule.data_level, levels), path="data_level")


def _check_source(rule: Rule, datasources: Mapping[str, DataSource]) -> Iterator[Problem]:
    strategy = rule.strategy
    source = datasources.get(strategy.datasource_id)
    if source is None:
        hint = did_you_mean(strategy.datasource_id, datasources)
        message = f"there is no datasource '{strategy.datasource_id}'"
        yield Problem("DataSourceNotFound", message, hint=hint, path="strategy.datasource_id")
    elif isinstance(strategy, PathStrategy) and source.path_prefix is None:
        message = f"datasource '{source.id}' ({source.type}) has tables, not paths"
        yield Problem("InvalidArguments", message, hint="use `type: table` with `table`", path="strategy.type")


def _check_templates(rule: Rule, calendar: Calendar, text_at: TextAt) -> Iterator[Problem]:
    strategy = rule.strategy
    templates = (
        {"path": strategy.path}
        if isinstance(strategy, PathStrategy)
        else {"table": strategy.table, "schema": strategy.schema_ or ""}
    )
    for key, written in templates.items():
        template = text_at(("strategy", key)) or written
        problems = check_template(template)
        if rule.data_level == ANY_LEVEL:
            problems += check_fit(template, None)
        elif rule.data_level in calendar.level_names:
            listed = [period for period in calendar.periods if period.level == rule.data_level]
            fits = (check_fit(template, period) for period in (calendar.example(rule.data_level), *listed))
            problems += next(filter(None, fits), [])
        yield from (problem.within(path=f"strategy.{key}") for problem in problems)
