"""Decides where an output writes, for drafts and active projects alike.

Templates, table names, period identifiers and links all change where a path leads, so only the real path counts, with
`.` and `..` removed and every link followed. If it is not below each of its limits, nothing is written.
See docs/decisions/0008-what-an-output-may-touch.md.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from tallybook.errors import RunError, fail
from tallybook.model.datasource import DataSource
from tallybook.model.location import local_target
from tallybook.resolve.locate import is_relative, path_target, table_target

_OUTSIDE = "to write elsewhere, use an absolute path in `location` or in the `path_prefix` of a datasource"
_NOT_IN_A_NAME = re.compile(r"[/\\%\x00-\x1f\x7f]")


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


def table_to_write(source: DataSource, table: str, root: Path) -> str:
    """Returns the target of an output to a table of a datasource: a qualified name, or a path below the prefix."""
    prefix = source.path_prefix
    if prefix is None:
        return table_target(source, table, None, root)
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
