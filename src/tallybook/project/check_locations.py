"""Checks where rows are found: datasources and resolvers."""

from __future__ import annotations

from collections.abc import Iterator

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Checker, condition_hint
from tallybook.expressions.parse import parse
from tallybook.model.columns import BOOLEAN, NULL
from tallybook.model.datasource import DataSource
from tallybook.project.check_result import CheckResult
from tallybook.project.entities import DocumentPart
from tallybook.resolve.check import check_rule
from tallybook.resolve.resolve import when_scope
from tallybook.source import SourceText


def check_datasources(checked: CheckResult) -> Iterator[Problem]:
    """Reports credentials that are never used."""
    for entry in checked.definitions.datasources.values():
        useless = _useless_credential(entry.entity) if entry.entity.credential_ref else None
        if useless is not None:
            yield entry.part.problem(("credential_ref",), "InvalidArguments", *useless, key=True)


def _useless_credential(source: DataSource) -> tuple[str, str] | None:
    if source.uses_credential:
        return None
    if source.path_prefix is None:
        return "'credential_ref' is not used for tables of the session's catalog", "remove it and configure Spark"
    return (
        f"'credential_ref' is not used for files at '{source.path_prefix}'",
        "it opens s3, s3a, abfs and abfss URLs; for others remove it and configure Spark",
    )


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
