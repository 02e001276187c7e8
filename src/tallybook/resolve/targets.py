"""Turns a rendered path or table name into a target, to read it or to write it.

An output may not leave its limits, for drafts and active projects alike. Templates, table names, period identifiers and
links all change where a path leads, so only the real path counts, with `.` and `..` removed and every link followed. If
it is not below each of its limits, nothing is written. See docs/decisions/0008-what-an-output-may-touch.md.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import category
from urllib.parse import quote

from tallybook.errors import RunError, did_you_mean, fail
from tallybook.model.datasource import DataSource
from tallybook.model.location import local_target

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The scheme of a url. It has at least two letters, because `C:` is a drive."""
_OUTSIDE = "to write elsewhere, use an absolute path in `location` or in the `path_prefix` of a datasource"
_NOT_IN_A_NAME = re.compile(r"[/\\%\x00-\x1f\x7f]")


def usable_source(datasource_id: str, datasources: Mapping[str, DataSource], root: Path) -> DataSource:
    """Returns the datasource with this id. Raises DataSourceNotFound if it is missing or disabled.

    The paths of credentials and databases are relative to the workspace in a definition, and absolute in the result.
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
    return source.below(root)


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
    return source.table_name(schema or source.default_schema, table)


def _climbs(path: str) -> bool:
    return posixpath.normpath(path).split("/")[0] == ".."


def _leaves(path: str, prefix: str, hint: str | None = None) -> RunError:
    limit = f"its prefix '{prefix}'" if prefix else "the workspace"
    return fail("InvalidArguments", f"path '{path}' leads outside {limit}", hint=hint)


@dataclass(frozen=True)
class Limit:
    """A folder that an output may not leave, and what a message calls it."""

    folder: str
    name: str


def _real_path(target: str, *limits: Limit) -> str:
    """Returns the real path of a target, or its url. Raises InvalidDestination unless it is below every limit."""
    local = local_target(target)
    if local is None:
        return target
    real = Path(os.path.realpath(local))
    for limit in limits:
        if Path(os.path.realpath(limit.folder)) not in real.parents:
            through_link = os.path.normpath(local) != str(real)
            raise fail(
                "InvalidDestination",
                f"the output would be written to {real}, which is not inside {limit.name}"
                + (f" ({local} leads there through a link)" if through_link else ""),
                hint=_OUTSIDE,
            )
    return str(real)


def table_to_write(source: DataSource, table: str, root: Path, schema: str | None = None) -> str:
    """Returns the target of an output to a table of a datasource: a qualified name, or a path below the prefix."""
    prefix = source.path_prefix
    if prefix is None:
        return table_target(source, table, schema, root)
    table = f"{schema}/{table}" if schema else table
    name = f"the prefix '{prefix}' of datasource '{source.id}'"
    target, folder = _joined(table, root, prefix), path_target(prefix, root)
    if local_target(target) is None:
        below = posixpath.normpath(table.lstrip("/"))
        if below == ".":
            raise fail("InvalidDestination", f"table '{table}' is not a path inside {name}", hint="give it a name")
        return f"{folder.rstrip('/')}/{below}"
    around = [_workspace(root)] if is_relative(prefix) else []
    return _real_path(target, Limit(folder, name), *around)


def path_to_write(path: str, root: Path) -> str:
    """Returns the target of an output to a path: anywhere if it is absolute or a url, else inside the workspace."""
    return _real_path(_joined(path, root), *([_workspace(root)] if is_relative(path) else []))


def sandbox_path(sandbox: Path, root: Path, project: str, period: str, name: str) -> str:
    """Returns the path in the sandbox where an output is written instead of its destination."""
    limits = [Limit(str(sandbox), f"the sandbox {sandbox}")]
    if Path(os.path.normpath(sandbox.absolute())).is_relative_to(root.absolute()):
        limits.append(_workspace(root))
    return _real_path(str(sandbox / project / _segment(period) / _segment(name)), *limits)


def _segment(text: str) -> str:
    """Returns a text as one segment of a path. Characters that would make it more than a name are percent-encoded."""
    encoded = _NOT_IN_A_NAME.sub(lambda match: quote(match[0], safe=""), text)
    return encoded if encoded.strip(".") else encoded.replace(".", "%2E")


def _workspace(root: Path) -> Limit:
    return Limit(str(root.absolute()), "the workspace")


def _joined(path: str, root: Path, prefix: str = "") -> str:
    try:
        return path_target(path, root, prefix)
    except RunError as error:
        raise RunError([replace(error.problem, type="InvalidDestination", hint=_OUTSIDE)]) from error
