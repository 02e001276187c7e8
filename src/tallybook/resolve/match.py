"""Chooses the resolver of a dataset, and the rule of that resolver for a table and period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tallybook.errors import ProblemError, RunError, did_you_mean, fail
from tallybook.expressions.check import Checker
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import DATE, STRING, ColumnType
from tallybook.model.period import Period
from tallybook.model.resolver import Resolver, Rule

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


def evaluate_when(text: str, values: Mapping[str, object], timestamp: datetime) -> bool | None:
    """Returns the result of a `when`; None if it is NULL. `timestamp` is the time that NOW() and TODAY() return."""
    checker = Checker(when_scope())
    typed = checker.check(parse(text))
    if typed is None:
        raise ProblemError(checker.problems)
    columns = {name.partition(".")[2]: value for name, value in values.items()}
    evaluator = Evaluator(timestamp, str(values["period.identifier"]), lambda column: columns[column.column])
    result = evaluator.value(typed)
    assert result is None or isinstance(result, bool), "the checker refuses a `when` that is not a condition"
    return result


def match(resolver: Resolver, values: Mapping[str, object], timestamp: datetime) -> Rule:
    """Returns the first rule whose `when` is true. Raises NoRuleMatched with the reason for each rule."""
    reasons = []
    for rule in resolver.rules:
        result = True if rule.when is None else _evaluate(resolver, rule, rule.when, values, timestamp)
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
    resolver: Resolver, rule: Rule, when: str, values: Mapping[str, object], timestamp: datetime
) -> bool | None:
    try:
        return evaluate_when(when, values, timestamp)
    except RunError as error:
        problem = error.problem
        message = f"`when` of rule '{rule.name}' of resolver '{resolver.id}': {problem.message}"
        raise RunError([replace(problem, message=message)]) from None
