"""Checks resolvers."""

from __future__ import annotations

from collections.abc import Iterator

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Checker, condition_hint
from tallybook.expressions.parse import parse
from tallybook.model.columns import BOOLEAN, NULL
from tallybook.project.check_result import CheckResult
from tallybook.project.entities import DocumentPart
from tallybook.resolve.check import check_rule
from tallybook.resolve.match import when_scope
from tallybook.source import SourceText


def check_resolvers(checked: CheckResult) -> Iterator[Problem]:
    """Checks rules, templates and conditions, and that at most one resolver is the default."""
    sources = {id: entry.entity for id, entry in checked.definitions.datasources.items()}
    unreadable = checked.definitions.unreadable
    default: str | None = None
    for entry in checked.definitions.resolvers.values():
        resolver, part = entry.entity, entry.part
        if resolver.is_default and default is not None:
            message = f"resolver '{default}' is already the default"
            yield part.problem(("is_default",), "InvalidArguments", message, "remove `is_default` from one of them")
        default = resolver.id if resolver.is_default else default
        for index, rule in enumerate(resolver.rules):
            here = part.below("rules", index)
            if checked.calendar is not None:
                for problem in check_rule(rule, checked.calendar, sources, here.text):
                    if problem.type == "DataSourceNotFound" and rule.strategy.datasource_id in unreadable:
                        continue
                    yield here.locate(problem)
            if rule.when is not None:
                yield from _check_when(rule.when, here)


def _check_when(when: str, part: DocumentPart) -> Iterator[Problem]:
    source = part.text(("when",)) or SourceText(when, part.place(("when",)))
    checker = Checker(when_scope())
    try:
        typed = checker.check(parse(source))
    except ProblemError as error:
        yield from (part.locate(problem, "when") for problem in error.problems)
        return
    yield from (part.locate(problem, "when") for problem in checker.problems)
    if typed is not None and typed.type not in (BOOLEAN, NULL):
        yield part.problem(
            ("when",),
            "InvalidSelector",
            f"`when` has type {typed.type}, but must be true or false",
            condition_hint(typed),
        )
