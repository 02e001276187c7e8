"""Turns the `credential_ref` of a datasource into options for Spark's file systems and for delta-rs.

The secret is read when a location is opened. It goes into the options of single reads and writes, not into the settings
of the session, which others can read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrameReader, SparkSession

from tallybook.errors import RunError, fail
from tallybook.model.datasource import storage_kind
from tallybook.model.location import Location
from tallybook.secrets import read_secret


def reader(spark: SparkSession, location: Location) -> DataFrameReader:
    """Returns a Spark reader with the credential of a location. Every read of files starts with it."""
    return spark.read.options(**spark_options(location))


def spark_options(location: Location) -> dict[str, str]:
    """Returns options for Spark's readers and writers, which pass them to Hadoop's file systems."""
    store = _store(location)
    return {} if store is None else store.for_spark(urlsplit(location.target).netloc, _parts(location, store))


def delta_options(location: Location) -> dict[str, str] | None:
    """Returns the storage options for delta-rs; None without a credential."""
    store = _store(location)
    return None if store is None else store.for_delta(urlsplit(location.target).netloc, _parts(location, store))


@dataclass(frozen=True)
class _ObjectStore:
    """A kind of object store: the required and optional parts of its secret, and the options made of them."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    for_spark: Callable[[str, Mapping[str, str]], dict[str, str]]
    for_delta: Callable[[str, Mapping[str, str]], dict[str, str]]


_S3_NAMES = {"access_key_id": "access.key", "secret_access_key": "secret.key", "session_token": "session.token"}
_STORES = {
    "s3": _ObjectStore(
        ("access_key_id", "secret_access_key"),
        ("session_token",),
        lambda bucket, parts: {f"fs.s3a.bucket.{bucket}.{_S3_NAMES[name]}": part for name, part in parts.items()},
        lambda _, parts: {f"AWS_{name.upper()}": part for name, part in parts.items()},
    ),
    "azure": _ObjectStore(
        ("account_key",),
        (),
        lambda host, parts: {f"fs.azure.account.key.{host.rpartition('@')[2]}": parts["account_key"]},
        lambda host, parts: {
            "azure_storage_account_name": host.rpartition("@")[2].partition(".")[0],
            "azure_storage_account_key": parts["account_key"],
        },
    ),
}


def _store(location: Location) -> _ObjectStore | None:
    """Returns the object store of a location, if its datasource has a credential for it."""
    if location.source.credential_ref is None:
        return None
    return _STORES.get(storage_kind(location.target) or "")


def _parts(location: Location, store: _ObjectStore) -> dict[str, str]:
    """Returns the parts of the secret, which is a JSON object, or `name=value` pairs on separate lines or separated by
    semicolons.

    The names may begin with `aws_`, as in the files of the AWS command line. A secret with one part may be the bare
    value.
    """
    reference = str(location.source.credential_ref)
    text = read_secret(reference, Path(), os.environ).reveal()
    pairs = _pairs(text)
    parts = {name: pairs[name] for name in (*store.required, *store.optional) if pairs.get(name)}
    if len(store.required) == 1 and not parts:
        parts = {store.required[0]: text.strip()}
    missing = [name for name in store.required if name not in parts]
    if missing:
        raise _incomplete(location, reference, missing, store)
    return parts


def _pairs(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        lines = (line.partition("=") for line in text.replace(";", "\n").splitlines())
        value = {name: rest for name, _, rest in lines}
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name).strip().lower().removeprefix("aws_"): str(part).strip() for name, part in pairs}


def _incomplete(location: Location, reference: str, missing: list[str], store: _ObjectStore) -> RunError:
    lines = " and ".join(f"{name}=…" for name in store.required)
    return fail(
        "CredentialNotFound",
        f"the secret {reference} of datasource '{location.source.id}' has no {' and no '.join(missing)}",
        hint=f"write {lines}, each on its own line",
    )
