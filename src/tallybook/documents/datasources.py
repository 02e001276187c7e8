"""The documents of `tallybook datasources`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tallybook.documents.base import Document, IfKnown
from tallybook.documents.problems import ProblemDocument
from tallybook.exit_codes import ExitCode, common_exit
from tallybook.model.datasource import DataSource
from tallybook.secrets import hide_secrets

if TYPE_CHECKING:
    from tallybook.runs.datasource_check import DatasourceCheck

NAMES_SHOWN = 10


class DatasourceDocument(Document):
    """A datasource as the files define it."""

    id: str
    """The id of the datasource."""
    type: str
    """Its type, such as csv or delta."""
    status: str
    """`active` or `disabled`."""
    place: str | None
    """The folder or url; null for the catalog of the Spark session."""
    credential_ref: str | None
    """Where its secret is read from."""

    @classmethod
    def of(cls, source: DataSource) -> DatasourceDocument:
        return cls(
            id=source.id,
            type=source.type,
            status=source.status,
            place=None if source.place is None else hide_secrets(source.place),
            credential_ref=source.credential_ref,
        )


class DatasourceList(Document):
    """The datasources of the workspace."""

    datasources: tuple[DatasourceDocument, ...]
    """The datasources, by their ids."""


class CheckedDatasource(DatasourceDocument):
    """A datasource, and what it answered."""

    result: str
    """`ok`, `warning` (there is nothing yet), `failed` or `skipped`."""
    message: str
    """Why it is not `ok`."""
    count: int
    """The number of files or tables in it; listing stops at 10,000."""
    names: tuple[str, ...]
    """The first of them."""
    duration_ms: int
    """How long it took to answer."""
    problem: IfKnown[ProblemDocument] = None
    """What is wrong, in full."""

    @classmethod
    def checked(cls, check: DatasourceCheck) -> CheckedDatasource:
        return cls(
            **dict(DatasourceDocument.of(check.source)),
            result=check.status,
            message=check.message,
            count=len(check.names),
            names=check.names[:NAMES_SHOWN],
            duration_ms=round(check.seconds * 1000),
            problem=None if check.problem is None else ProblemDocument.of(check.problem),
        )


class CheckedDatasources(Document):
    """What the datasources answered."""

    datasources: tuple[CheckedDatasource, ...]
    """The datasources, by their ids."""
    failed: int
    """How many of them failed."""

    @classmethod
    def of(cls, checks: Iterable[DatasourceCheck]) -> CheckedDatasources:
        checked = tuple(map(CheckedDatasource.checked, checks))
        return cls(datasources=checked, failed=sum(one.result == "failed" for one in checked))


def exit_of_checks(checks: Iterable[DatasourceCheck]) -> ExitCode:
    """Returns the exit code of a command that made these checks."""
    return common_exit(check.problem.exit for check in checks if check.status == "failed" and check.problem)
