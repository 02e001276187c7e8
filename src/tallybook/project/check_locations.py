"""Checks where rows are found: datasources and resolvers."""

from __future__ import annotations

from collections.abc import Iterator

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Checker, condition_hint
from tallybook.expressions.parse import parse
from tallybook.model.columns import BOOLEAN, NULL
from tallybook.model.datasource import DataSource
from tallybook.project.check_options import check_options
from tallybook.project.check_result import CheckResult
from tallybook.project.entities import DocumentPart
from tallybook.resolve.check import check_rule
from tallybook.resolve.render import check_no_tokens
from tallybook.resolve.resolve import when_scope
from tallybook.source import SourceText


def check_datasources(checked: CheckResult) -> Iterator[Problem]:
    """Reports wrong options, credentials that are never used, and tokens in places that no period fills in."""
    for entry in checked.definitions.datasources.values():
        for key in ("path_prefix", "url", "schema", "endpoint", "region"):
            written = entry.part.text(("options", key))
            for problem in check_no_tokens(written, _TOKENS[key]) if written is not None else ():
                yield entry.part.locate(problem, "options", key)
        yield from (entry.part.locate(problem, "options") for problem in check_options(entry.entity))
        useless = _useless_credential(entry.entity) if entry.entity.credential_ref else None
        if useless is not None:
            yield entry.part.problem(("credential_ref",), "InvalidArguments", *useless, key=True)


_TOKENS = {
    "path_prefix": "write the folder itself; tokens such as {{YYYY}} belong to the `path` of a resolver or an output",
    "url": "write the address itself",
    "endpoint": "write the address itself",
    "region": "write the region itself",
    "schema": "write the schema itself; tokens such as {{YYYY}} belong to the `schema` of a resolver",
}


def _useless_credential(source: DataSource) -> tuple[str, str] | None:
    if source.uses_credential:
        return None
    if source.path_prefix is None:
        message = f"'credential_ref' is not used for datasource '{source.id}'"
        return message, "remove it; tables of the session's catalog need settings of Spark, SQLite has no passwords"
    return (
        f"'credential_ref' is not used for files at '{source.path_prefix}'",
        "it opens s3, s3a, gs, abfs and abfss URLs; for others remove it and configure Spark",
    )


def check_resolvers(checked: CheckResult) -> Iterator[Problem]:
    """Checks rules, templates and conditions, and that at most one resolver is the default."""
    sources = {id: entry.entity for id, entry in checked.definitions.datasources.items()}
    unread = checked.definitions.unread
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
                    missing = problem.type == "DataSourceNotFound"
                    if missing and any(one.may_define("datasource", rule.strategy.datasource_id) for one in unread):
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
