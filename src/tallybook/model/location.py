"""A location: what a resolver finds, and where a format reads or writes rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from tallybook.model.datasource import CatalogSource, DatabaseSource, DataSource, FileSource
from tallybook.model.state import Json

_DATASOURCE: TypeAdapter[DataSource] = TypeAdapter(DataSource)


def is_hidden(name: str) -> bool:
    """True if Spark ignores a file or folder of this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def local_target(target: str) -> str | None:
    """The path of a target on this machine's file system; None for any other url."""
    scheme = urlsplit(target).scheme
    if scheme == "file":
        return "/" + target[len("file:") :].lstrip("/")
    return target if not scheme else None


ABSENT = -1
"""The version of a table that does not exist: a run that found no table when it was planned reads none."""


@dataclass(frozen=True)
class Location:
    """A path or table of a datasource, rendered for one period."""

    source: FileSource | DatabaseSource | CatalogSource
    target: str
    """An absolute path or url for files (`path_prefix` included), a qualified name for tables."""
    period: str | None = None
    """The identifier of the period it was rendered for; None if one location serves all periods."""
    resolver: str | None = None
    rule: str | None = None
    on_missing: Literal["fail", "empty"] = "fail"
    version: int | None = None
    """The version of a table to read; None for the latest, ABSENT if there was no table at plan time."""
    dataset_version: int | None = None
    """The version of the registered dataset whose rows these are; None for other rows."""
    periods: tuple[str, ...] = ()
    """The periods whose rows are read here; empty for the rows of all periods."""
    partition_column: str | None = None
    """The column of whole numbers by whose ranges a table of a database is read; None for its primary key."""
    partitions: int | None = None
    """The number of these ranges; None if the size of the table decides."""
    snapshot: str | None = None
    """The snapshot of a database that the run holds; it ends with the run, so it is not recorded."""

    def __str__(self) -> str:
        pinned = f" at version {self.version}" if self.version not in (None, ABSENT) else ""
        return f"{self.source.type} {self.target or self.source.id}{pinned}"

    @property
    def local_path(self) -> str | None:
        """The path on this machine's file system; None for any other url, and for a table that has a name instead of
        a path."""
        return local_target(self.target) if self.source.path_prefix is not None else None

    def to_json(self) -> Json:
        """Returns the location as the store keeps it. Datasources contain references to secrets, never secrets."""
        return {
            "source": self.source.model_dump(mode="json", by_alias=True),
            "target": self.target,
            "period": self.period,
            "resolver": self.resolver,
            "rule": self.rule,
            "on_missing": self.on_missing,
            "version": self.version,
            "dataset_version": self.dataset_version,
            "periods": list(self.periods),
            "partition_column": self.partition_column,
            "partitions": self.partitions,
        }

    @classmethod
    def from_json(cls, body: Json) -> Location:
        """Returns the location that `to_json` wrote."""
        source = _DATASOURCE.validate_python(body["source"], strict=False)
        values: dict[str, Any] = {
            key: body[key] for key in ("target", "period", "resolver", "rule", "on_missing", "version")
        }
        later: dict[str, Any] = {key: body.get(key) for key in ("dataset_version", "partition_column", "partitions")}
        return cls(source, **values, **later, periods=tuple(body.get("periods", ())))
