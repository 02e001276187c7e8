"""Turns a rendered path or table name into a target: a path below a datasource's prefix, or a qualified table."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from unicodedata import category

from tallybook.errors import RunError, did_you_mean, fail
from tallybook.model.datasource import DataSource

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The scheme of a url. It has at least two letters, because `C:` is a drive."""


def usable_source(datasource_id: str, datasources: Mapping[str, DataSource], root: Path) -> DataSource:
    """Returns the datasource with this id. Raises DataSourceNotFound if it is missing or disabled.

    A credential file is relative to the workspace in a definition, and absolute in the result.
    """
    source = datasources.get(datasource_id)
    if source is None:
        hint = did_you_mean(datasource_id, datasources)
        raise fail("DataSourceNotFound", f"there is no datasource '{datasource_id}'", hint=hint)
    if source.status == "disabled":
        raise fail(
            "DataSourceNotFound",
            f"datasource '{datasource_id}' is disabled",
            hint="set its `status: active`, or use another datasource",
        )
    kind, _, path = (source.credential_ref or "").partition(":")
    return source.model_copy(update={"credential_ref": f"file:{root.absolute() / path}"}) if kind == "file" else source


def path_target(path: str, root: Path, prefix: str = "") -> str:
    """Returns the absolute path or url of a rendered path, below the prefix if there is one.

    A relative path is below the workspace and may not leave it. Below a url or an absolute prefix, a path may not leave
    the prefix. Parts of a path come from data and identifiers, so `..` is not trusted.
    """
    if any(category(letter) in ("Cc", "Cs") for letter in path):
        raise fail("InvalidArguments", f"path {path!r} contains a control character")
    if prefix and _URL.match(path):
        raise _leaves(path, prefix, hint="put the url into the datasource's `path_prefix`")
    base, below = (prefix, path.lstrip("/")) if prefix else (path, "")
    if _URL.match(base):
        if _climbs(below):
            raise _leaves(path, prefix)
        return f"{base.rstrip('/')}/{below}" if below else base
    if Path(base).is_absolute():
        if _climbs(below):
            raise _leaves(path, prefix)
        return os.path.normpath(Path(base, below))
    inside = os.path.normpath(Path(base, below))
    if _climbs(inside):
        raise _leaves(path, prefix, hint="for a location outside the workspace, use an absolute path")
    return os.path.normpath(root.absolute() / inside)


def is_relative(path: str) -> bool:
    """True if a path is relative to the workspace: neither absolute nor a url."""
    return not (_URL.match(path) or Path(path).is_absolute())


def table_target(source: DataSource, table: str, schema: str | None, root: Path) -> str:
    """Returns the qualified name of a table; in a datasource of files, the path of the folder or file of that name."""
    if source.path_prefix is not None:
        return path_target(f"{schema}/{table}" if schema else table, root, source.path_prefix)
    within = schema or source.default_schema
    return f"{within}.{table}" if within else table


def _climbs(path: str) -> bool:
    return posixpath.normpath(path).split("/")[0] == ".."


def _leaves(path: str, prefix: str, hint: str | None = None) -> RunError:
    limit = f"its prefix '{prefix}'" if prefix else "the workspace"
    return fail("InvalidArguments", f"path '{path}' leads outside {limit}", hint=hint)
