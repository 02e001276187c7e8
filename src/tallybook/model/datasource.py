"""Datasources: how to reach rows. Secrets are references, never values.

What the checker and the resolver ask of a datasource is a property that every kind of datasource answers. What a format
does with rows is in `storage.formats`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from tallybook.model.base import Entity, Id, NonEmpty, NotBlank, Text
from tallybook.model.dataset import Status
from tallybook.secrets import REFERENCE

FileFormat = Literal["parquet", "csv", "json", "orc", "delta", "excel"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
DEFAULT_FORMAT: FileFormat = "parquet"


@dataclass(frozen=True)
class _FormatFacts:
    """What is known of a file format without looking at files."""

    extensions: tuple[str, ...] = ()
    """An output to a path with one of these extensions is one file; any other output is a folder."""
    keeps_versions: bool = False
    replaces_periods: bool = False
    has_partitions: bool = False
    for_people: bool = False
    """True if people open its files, so that an output leaves system columns out by default."""
    refused_in_names: str = ""
    """Characters that the names of its columns cannot have."""
    options: frozenset[str] = frozenset()
    """The keys of `FormatOptions` that mean something for it."""


_CSV_OPTIONS = frozenset(
    (
        *("delimiter", "has_header", "null_value", "quote", "encoding", "bom"),
        *("decimal", "thousands", "date_format", "timestamp_format"),
    )
)
_DELTA_NAMES = " ,;{}()\n\t="
"""What Delta Lake refuses in the names of columns unless a table maps them."""
_FACTS: Mapping[FileFormat, _FormatFacts] = {
    "parquet": _FormatFacts((".parquet", ".pq"), has_partitions=True, refused_in_names="{}"),
    "csv": _FormatFacts((".csv", ".tsv", ".txt"), options=_CSV_OPTIONS),
    "json": _FormatFacts((".json", ".jsonl", ".ndjson")),
    "orc": _FormatFacts((".orc",), refused_in_names="{}"),
    "delta": _FormatFacts(
        keeps_versions=True, replaces_periods=True, has_partitions=True, refused_in_names=_DELTA_NAMES
    ),
    "excel": _FormatFacts((".xlsx",), for_people=True, options=frozenset(("has_header", "sheet", "range"))),
}


def format_of_path(path: str) -> FileFormat:
    """The format that the extension of a path names, else Parquet."""
    return named_format(path) or DEFAULT_FORMAT


def named_format(path: str) -> FileFormat | None:
    """The format that the extension of a path names; None if it names none."""
    suffix = PurePosixPath(path).suffix
    named = (format for format in FILE_FORMATS if suffix == f".{format}" or suffix in _FACTS[format].extensions[:1])
    return next(named, None)


_STORAGE_KINDS = {"s3": "s3", "s3a": "s3", "abfs": "azure", "abfss": "azure", "gs": "google"}


def storage_kind(path: str) -> str | None:
    """The kind of object store that a url is in, of those that `credential_ref` can open; None for all others."""
    return _STORAGE_KINDS.get(urlsplit(path).scheme.lower())


SQLITE_SCHEME = "sqlite:"


def _quoted_unless_plain(name: str) -> str:
    is_plain = name.isascii() and name.replace("_", "a").isalnum()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def name_parts(name: str) -> list[str]:
    """The parts of a table name that `DatabaseSource.table_name` made."""
    parts, in_quotes = [""], False
    for index, letter in enumerate(name):
        if letter == '"':
            in_quotes = not in_quotes
            if in_quotes and index and name[index - 1] == '"':
                parts[-1] += '"'
        elif letter == "." and not in_quotes:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


CredentialRef = Annotated[str, StringConstraints(pattern=REFERENCE)]


Thousands = Literal[".", ",", " ", "'", "_", "\u2019", "\u00a0", "\u202f"]
"""Separators of thousands: also the typographic apostrophe, the no-break space and the narrow no-break space."""


class FormatOptions(Entity):
    """How the values of a file are written. Each key means something for some formats only."""

    delimiter: Annotated[str, StringConstraints(min_length=1, max_length=4)] = ","
    has_header: bool = True
    null_value: Text = ""
    quote: Annotated[str, StringConstraints(pattern=r"^[!-/:-@\[-`{-~]$")] = '"'
    encoding: NonEmpty = "utf-8"
    bom: bool = False
    decimal: Literal[".", ","] = "."
    thousands: Thousands | None = None
    date_format: NonEmpty | None = None
    timestamp_format: NonEmpty | None = None
    sheet: NonEmpty | None = None
    range: NonEmpty | None = None


class _PathPrefix(Entity):
    path_prefix: NotBlank


class S3Options(Entity):
    """How to reach an S3 store that is not found by the name of its bucket alone."""

    endpoint: NonEmpty | None = Field(
        None, description="The address of an S3 store other than Amazon's, such as https://minio.internal:9000."
    )
    region: NonEmpty | None = Field(None, description="The region of an S3 bucket.")
    allow_http: bool = Field(False, description="Allows an `endpoint` without encryption.")


class FileOptions(FormatOptions, S3Options, _PathPrefix):
    """Where files are, and how their values are written."""


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
    def place(self) -> str | None:
        """The folder or url that a person knows the datasource by; None for the catalog of the session."""
        return self.path_prefix

    @property
    def default_schema(self) -> str | None:
        """The schema of tables whose name has none."""
        return None

    @property
    def uses_credential(self) -> bool:
        """True if a credential can open the datasource."""
        return False

    @property
    def format_options(self) -> FormatOptions | None:
        """How the values of its files are written; None if it has tables instead of files."""
        return None

    @property
    def unused_options(self) -> list[str]:
        """The options that have another value than the default and mean nothing for the format."""
        return []

    @property
    def for_people(self) -> bool:
        """True if people open its files, so that an output leaves system columns out by default."""
        return False

    @property
    def keeps_order(self) -> bool:
        """True if rows are read in the order in which they were written."""
        return False

    @property
    def refused_in_names(self) -> str:
        """The characters that the names of columns cannot have."""
        return ""

    @property
    def store_name(self) -> str:
        """What tables with the same name have in common if they are the same table, for datasources with tables."""
        return self.id

    def table_name(self, schema: str | None, table: str) -> str:
        """The name of a table with its schema."""
        return f"{schema}.{table}" if schema else table

    def below(self, root: Path) -> Self:
        """The datasource with absolute paths. A relative path of a credential is below the workspace."""
        kind, _, path = (self.credential_ref or "").partition(":")
        return self.model_copy(update={"credential_ref": f"file:{root.absolute() / path}"}) if kind == "file" else self

    @property
    def keeps_versions(self) -> bool:
        """True if an older version of a table stays readable after a newer one is written."""
        return False

    @property
    def replaces_periods(self) -> bool:
        """True if an output can replace the rows of one period in one step, and keep the others."""
        return False

    @property
    def has_partitions(self) -> bool:
        """True if an output can divide its rows among folders named after values."""
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

    @property
    def replaces_periods(self) -> bool:
        return _FACTS[self.type].replaces_periods

    @property
    def has_partitions(self) -> bool:
        return _FACTS[self.type].has_partitions

    @property
    def for_people(self) -> bool:
        return _FACTS[self.type].for_people

    @property
    def keeps_order(self) -> bool:
        return not self.keeps_versions

    @property
    def refused_in_names(self) -> str:
        return _FACTS[self.type].refused_in_names

    @property
    def format_options(self) -> FormatOptions:
        return self.options

    @property
    def unused_options(self) -> list[str]:
        keys = FormatOptions.model_fields.items()
        given = (key for key, field in keys if getattr(self.options, key) != field.default)
        return [key for key in given if key not in _FACTS[self.type].options]

    def is_one_file(self, path: str) -> bool:
        return PurePosixPath(path).suffix.lower() in _FACTS[self.type].extensions


class DatabaseSource(_DataSource):
    """Tables of a database."""

    type: Literal["database"]
    options: DatabaseOptions

    @property
    def place(self) -> str:
        return self.options.url

    @property
    def default_schema(self) -> str | None:
        return self.options.schema_

    @property
    def uses_credential(self) -> bool:
        return not self.options.url.startswith(SQLITE_SCHEME)

    @property
    def replaces_periods(self) -> bool:
        return True

    @property
    def store_name(self) -> str:
        """The url without the user: the same tables can be reached as different users."""
        scheme, separator, rest = self.options.url.partition("://")
        authority, slash, path = rest.partition("/")
        return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path.partition('?')[0]}"

    def table_name(self, schema: str | None, table: str) -> str:
        """The name as in SQL: parts with other characters than letters, digits and `_` are quoted."""
        return ".".join(map(_quoted_unless_plain, [*([schema] if schema else []), table]))

    def below(self, root: Path) -> Self:
        """The datasource with absolute paths: of a credential, and of a SQLite database."""
        source = super().below(root)
        file = self.options.url.removeprefix(f"{SQLITE_SCHEME}///")
        if file in (self.options.url, "") or file.startswith("/"):
            return source
        url = f"{SQLITE_SCHEME}///{os.path.normpath(root.absolute() / file)}"
        return source.model_copy(update={"options": self.options.model_copy(update={"url": url})})


class CatalogSource(_DataSource):
    """Tables of the session's catalog."""

    type: Literal["spark_catalog"]
    options: CatalogOptions = CatalogOptions()

    @property
    def default_schema(self) -> str | None:
        return self.options.schema_


DataSource = Annotated[FileSource | DatabaseSource | CatalogSource, Field(discriminator="type")]
