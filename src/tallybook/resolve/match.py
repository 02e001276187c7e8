"""First step: which rule of a resolver speaks for a table and period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tallybook.errors import ProblemError, RunError, fail
from tallybook.expressions.check import Checker
from tallybook.expressions.evaluate import Evaluator
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import DATE, STRING, ColumnType
from tallybook.model.period import Period
from tallybook.model.resolver import Resolver, Rule

FACT_TYPES: dict[str, ColumnType] = {
    "period.identifier": STRING,
    "period.level": STRING,
    "period.start_date": DATE,
    "period.end_date": DATE,
    "table.name": STRING,
    "dataset.id": STRING,
}
"""What a `when` can read."""


def fact_scope() -> Scope:
    """The facts as an expression sees them: `period.start_date`, `table.name`, `dataset.id`."""
    tables: dict[str, dict[str, ColumnType]] = {}
    for name, type in FACT_TYPES.items():
        table, _, column = name.partition(".")
        tables.setdefault(table, {})[column] = type
    return Scope(tuple(ScopeTable(name, columns) for name, columns in tables.items()))


def facts(period: Period, table_name: str, dataset_id: str) -> dict[str, object]:
    """The values a `when` reads; dates stay dates, so that they compare as dates."""
    return {
        "period.identifier": period.identifier,
        "period.level": period.level,
        "period.start_date": period.start_date,
        "period.end_date": period.end_date,
        "table.name": table_name,
        "dataset.id": dataset_id,
    }


def condition(text: str, known: Mapping[str, object], timestamp: datetime) -> bool | None:
    """Says whether a `when` is true of the facts; None when it is NULL. `timestamp` is what NOW() and TODAY() mean."""
    checker = Checker(fact_scope())
    typed = checker.check(parse(text))
    if typed is None:
        raise ProblemError(checker.problems)
    columns = {name.partition(".")[2]: value for name, value in known.items()}
    evaluator = Evaluator(timestamp, str(known["period.identifier"]), lambda column: columns[column.column])
    verdict = evaluator.value(typed)
    assert verdict is None or isinstance(verdict, bool), "the checker refuses a `when` that is no condition"
    return verdict


def match(resolver: Resolver, known: Mapping[str, object], timestamp: datetime) -> Rule:
    """The first rule whose `when` is true; NoRuleMatched says of each rule why it is not the one."""
    reasons = []
    for rule in resolver.rules:
        verdict = True if rule.when is None else _verdict(resolver, rule, rule.when, known, timestamp)
        if verdict:
            return rule
        reasons.append(f"rule '{rule.name}': {rule.when} is {'unknown (NULL)' if verdict is None else 'false'}")
    raise fail(
        "NoRuleMatched",
        f"no rule of resolver '{resolver.id}' fits table '{known['table.name']}' of dataset '{known['dataset.id']}' "
        f"in {known['period.level']} '{known['period.identifier']}'" + "".join(f"\n    {reason}" for reason in reasons),
        hint="add a rule without `when` at the end to cover everything else",
    )


def _verdict(
    resolver: Resolver, rule: Rule, when: str, known: Mapping[str, object], timestamp: datetime
) -> bool | None:
    try:
        return condition(when, known, timestamp)
    except RunError as error:
        problem = error.problem
        message = f"`when` of rule '{rule.name}' of resolver '{resolver.id}': {problem.message}"
        raise RunError([replace(problem, message=message)]) from None
