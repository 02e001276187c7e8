"""Checks datasources."""

from __future__ import annotations

from collections.abc import Iterator

from tallybook.errors import Problem
from tallybook.model.datasource import DataSource
from tallybook.project.check_result import CheckResult


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
