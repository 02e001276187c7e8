"""A location: what a resolver finds, and where a format reads or writes rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
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

    def __str__(self) -> str:
        pinned = f" at version {self.version}" if self.version not in (None, ABSENT) else ""
        return f"{self.source.type} {self.target}{pinned}"

    @property
    def local_path(self) -> str | None:
        """The path on this machine's file system; None for any other url."""
        return local_target(self.target)

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
        }

    @classmethod
    def from_json(cls, body: Json) -> Location:
        """Returns the location that `to_json` wrote."""
        source = _DATASOURCE.validate_python(body["source"], strict=False)
        return cls(source, *(body[key] for key in ("target", "period", "resolver", "rule", "on_missing", "version")))
