"""Turns `credential_ref` and the options of a datasource into options of its object store, for Spark and for delta-rs.

The secret is read when a location is opened. It goes into the options of single reads and writes, not into the settings
of the session, which others can read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrameReader, SparkSession

from tallybook.errors import RunError, fail
from tallybook.model.datasource import DataSource, storage_kind
from tallybook.model.location import Location
from tallybook.secrets import read_secret
from tallybook.storage.files import file_options


def reader(spark: SparkSession, location: Location) -> DataFrameReader:
    """Returns a Spark reader with the options of a location's object store. Every read of files starts with it."""
    return spark.read.options(**spark_options(location))


def spark_options(location: Location) -> dict[str, str]:
    """Returns options for Spark's readers and writers, which pass them to Hadoop's file systems."""
    store = _store(location)
    return {} if store is None else store.for_spark(location, _given(location, store))


def delta_options(location: Location) -> dict[str, str] | None:
    """Returns the storage options for delta-rs; None if there are none."""
    store = _store(location)
    return None if store is None else store.for_delta(location, _given(location, store)) or None


@dataclass(frozen=True)
class _ObjectStore:
    """A kind of object store: the required and optional parts of its secret, and the options made of them."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    for_spark: Callable[[Location, Mapping[str, str]], dict[str, str]]
    for_delta: Callable[[Location, Mapping[str, str]], dict[str, str]]


_S3_NAMES = {"access_key_id": "access.key", "secret_access_key": "secret.key", "session_token": "session.token"}
_S3_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def _s3_for_spark(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    """Hadoop has one connector for S3, which calls itself s3a. Other stores than Amazon's have no host for each
    bucket."""
    url, options = urlsplit(location.target), file_options(location)
    settings = {_S3_NAMES[name]: part for name, part in parts.items()}
    if options.endpoint is not None:
        encrypted = str(not options.allow_http).lower()
        settings |= {"endpoint": options.endpoint, "path.style.access": "true", "connection.ssl.enabled": encrypted}
    if options.region is not None:
        settings["endpoint.region"] = options.region
    scheme = {"fs.s3.impl": _S3_CLASS} if url.scheme.lower() == "s3" else {}
    return scheme | {f"fs.s3a.bucket.{url.netloc}.{name}": value for name, value in settings.items()}


def _s3_for_delta(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    options = file_options(location)
    given = {"AWS_ENDPOINT_URL": options.endpoint, "AWS_REGION": options.region}
    http = {"AWS_ALLOW_HTTP": "true"} if options.allow_http else {}
    known = {name: value for name, value in given.items() if value is not None}
    return {f"AWS_{name.upper()}": part for name, part in parts.items()} | known | http


def _azure_for_spark(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    host = urlsplit(location.target).netloc.rpartition("@")[2]
    return {f"fs.azure.account.key.{host}": key for key in parts.values()}


def _azure_for_delta(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    account = urlsplit(location.target).netloc.rpartition("@")[2].partition(".")[0]
    named = {"azure_storage_account_name": account}
    return {} if not parts else named | {"azure_storage_account_key": parts["account_key"]}


def _google_for_spark(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's connector for Google reads the key from a file, never from an option."""
    if not parts:
        return {}
    kind, _, path = str(location.source.credential_ref).partition(":")
    if kind != "file":
        raise fail(
            "CredentialNotFound",
            f"Spark reads the key of datasource '{location.source.id}' from a file, not from an environment variable",
            hint="write the key to a file, and `credential_ref: file:PATH`",
        )
    return {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": path}


def _google_for_delta(location: Location, parts: Mapping[str, str]) -> dict[str, str]:
    return {"google_service_account_key": json.dumps(dict(parts))} if parts else {}


_STORES = {
    "s3": _ObjectStore(("access_key_id", "secret_access_key"), ("session_token",), _s3_for_spark, _s3_for_delta),
    "azure": _ObjectStore(("account_key",), (), _azure_for_spark, _azure_for_delta),
    "google": _ObjectStore(
        ("client_email", "private_key", "private_key_id"),
        ("type", "project_id", "token_uri"),
        _google_for_spark,
        _google_for_delta,
    ),
}


def _store(location: Location) -> _ObjectStore | None:
    """Returns the object store of a location; None if it is not in one that is known here."""
    return _STORES.get(storage_kind(location.target) or "") if location.source.path_prefix is not None else None


def _given(location: Location, store: _ObjectStore) -> dict[str, str]:
    """Returns the parts of the secret; nothing if the datasource has none. The stores are then opened by what the
    machine has: variables, files of a cloud's own tools, or its identity."""
    return {} if location.source.credential_ref is None else _parts(location, store)


def _parts(location: Location, store: _ObjectStore) -> dict[str, str]:
    return secret_parts(location.source, store.required, store.optional)


def secret_parts(source: DataSource, required: Sequence[str], optional: Sequence[str]) -> dict[str, str]:
    """Returns the parts of the secret of a datasource; nothing if it has none. The secret is a JSON object, or
    `name=value` pairs on separate lines or separated by semicolons.

    The names may begin with `aws_`, as in the files of the AWS command line. A secret with one part may be the bare
    value.
    """
    if source.credential_ref is None:
        return {}
    text = read_secret(source.credential_ref, Path(), os.environ).reveal()
    pairs = _pairs(text)
    parts = {name: pairs[name] for name in (*required, *optional) if pairs.get(name)}
    if len(required) == 1 and not parts:
        parts = {required[0]: text.strip()}
    missing = [name for name in required if name not in parts]
    if missing:
        raise _incomplete(source, missing, required)
    return parts


def _pairs(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        lines = (line.partition("=") for line in text.replace(";", "\n").splitlines())
        value = {name: rest for name, _, rest in lines}
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name).strip().lower().removeprefix("aws_"): str(part).strip() for name, part in pairs}


def _incomplete(source: DataSource, missing: list[str], required: Sequence[str]) -> RunError:
    lines = " and ".join(f"{name}=…" for name in required)
    return fail(
        "CredentialNotFound",
        f"the secret {source.credential_ref} of datasource '{source.id}' has no {' and no '.join(missing)}",
        hint=f"write {lines}, each on its own line",
    )
