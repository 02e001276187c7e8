"""Datasources: how to reach rows. Secrets are references, never values.

What the checker and the resolver ask of a datasource is a property that every kind of datasource answers. What a format
does with rows is in `storage.formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from tallybook.model.base import Entity, Id, NonEmpty, NotBlank, Text
from tallybook.model.dataset import Status
from tallybook.secrets import REFERENCE

FileFormat = Literal["parquet", "csv", "json", "orc", "delta"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
DEFAULT_FORMAT: FileFormat = "parquet"


@dataclass(frozen=True)
class _FormatFacts:
    """What is known of a file format without looking at files."""

    extensions: tuple[str, ...] = ()
    """An output to a path with one of these extensions is one file; any other output is a folder."""
    keeps_versions: bool = False


_FACTS: Mapping[FileFormat, _FormatFacts] = {
    "parquet": _FormatFacts((".parquet", ".pq")),
    "csv": _FormatFacts((".csv", ".tsv", ".txt")),
    "json": _FormatFacts((".json", ".jsonl", ".ndjson")),
    "orc": _FormatFacts((".orc",)),
    "delta": _FormatFacts(keeps_versions=True),
}


def format_of_path(path: str) -> FileFormat:
    """The format that the extension of a path names, else Parquet."""
    suffix = PurePosixPath(path).suffix.removeprefix(".")
    return next((format for format in FILE_FORMATS if format == suffix), DEFAULT_FORMAT)


_STORAGE_KINDS = {"s3": "s3", "s3a": "s3", "abfs": "azure", "abfss": "azure"}


def storage_kind(path: str) -> str | None:
    """The kind of object store that a url is in, of those that `credential_ref` can open; None for all others."""
    return _STORAGE_KINDS.get(urlsplit(path).scheme.lower())


CredentialRef = Annotated[str, StringConstraints(pattern=REFERENCE)]


Delimiter = Annotated[str, StringConstraints(min_length=1, max_length=4)]


class FileOptions(Entity):
    """Where files are; the csv keys mean something for csv only."""

    path_prefix: NotBlank
    delimiter: Delimiter = ","
    has_header: bool = True
    null_value: str = ""


class DatabaseOptions(Entity):
    """A database, by a url without secrets."""

    url: NonEmpty
    schema_: NonEmpty | None = Field(None, alias="schema")


class CatalogOptions(Entity):
    """Tables of the Spark session's own catalog."""

    schema_: NonEmpty | None = Field(None, alias="schema")


class _DataSource(Entity):
    id: Id
    name: Text | None = None
    status: Status = "active"
    credential_ref: CredentialRef | None = None

    @property
    def path_prefix(self) -> str | None:
        """The folder or url that the paths of the datasource begin with; None if it has tables instead of paths."""
        return None

    @property
    def default_schema(self) -> str | None:
        """The schema of tables whose name has none."""
        return None

    @property
    def uses_credential(self) -> bool:
        """True if a credential can open the datasource."""
        return False

    @property
    def keeps_versions(self) -> bool:
        """True if an older version of a table stays readable after a newer one is written."""
        return False

    def is_one_file(self, path: str) -> bool:
        """True if an output to the path is one file, by its extension; otherwise the output is a folder or a table."""
        return False


class FileSource(_DataSource):
    """Files of one format below a path."""

    type: FileFormat
    options: FileOptions

    @property
    def path_prefix(self) -> str:
        return self.options.path_prefix

    @property
    def uses_credential(self) -> bool:
        return storage_kind(self.options.path_prefix) is not None

    @property
    def keeps_versions(self) -> bool:
        return _FACTS[self.type].keeps_versions

    def is_one_file(self, path: str) -> bool:
        return PurePosixPath(path).suffix.lower() in _FACTS[self.type].extensions


class DatabaseSource(_DataSource):
    """Tables of a database."""

    type: Literal["database"]
    options: DatabaseOptions

    @property
    def default_schema(self) -> str | None:
        return self.options.schema_

    @property
    def uses_credential(self) -> bool:
        return True


class CatalogSource(_DataSource):
    """Tables of the session's catalog."""

    type: Literal["spark_catalog"]
    options: CatalogOptions = CatalogOptions()

    @property
    def default_schema(self) -> str | None:
        return self.options.schema_


DataSource = Annotated[FileSource | DatabaseSource | CatalogSource, Field(discriminator="type")]
