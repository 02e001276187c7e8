"""Datasources: how to reach a place where rows lie. Secrets are references, never values."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from tallybook.model.base import Entity, Id, NonEmpty, NotBlank, Text
from tallybook.model.dataset import Status
from tallybook.secrets import REFERENCE

FileFormat = Literal["parquet", "csv", "json", "orc", "delta"]
FILE_FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "json", "orc", "delta")


def format_of(path: str) -> FileFormat:
    """By what the path ends with, else Parquet."""
    suffix = PurePosixPath(path).suffix.removeprefix(".")
    return next((format for format in FILE_FORMATS if format == suffix), "parquet")


_EXTENSIONS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "orc": (".orc",),
}


def names_one_file(format: str, path: str) -> bool:
    """True if an output to the path is one file, by the extension of its format; otherwise it is a folder of files."""
    return PurePosixPath(path).suffix.lower() in _EXTENSIONS.get(format, ())


_STORAGE_KINDS = {"s3": "s3", "s3a": "s3", "abfs": "azure", "abfss": "azure"}


def storage_kind(path: str) -> str | None:
    """The kind of object store that a url is in, of those that `credential_ref` can open; None for all others."""
    return _STORAGE_KINDS.get(urlsplit(path).scheme.lower())


CredentialRef = Annotated[str, StringConstraints(pattern=REFERENCE)]


Delimiter = Annotated[str, StringConstraints(min_length=1, max_length=4)]


class FileOptions(Entity):
    """Where files lie; the csv keys mean something for csv only."""

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


class FileSource(_DataSource):
    """Files of one format below a path."""

    type: FileFormat
    options: FileOptions


class DatabaseSource(_DataSource):
    """Tables of a database."""

    type: Literal["database"]
    options: DatabaseOptions


class CatalogSource(_DataSource):
    """Tables of the session's catalog."""

    type: Literal["spark_catalog"]
    options: CatalogOptions = CatalogOptions()


DataSource = Annotated[FileSource | DatabaseSource | CatalogSource, Field(discriminator="type")]
