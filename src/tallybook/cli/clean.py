"""`tallybook clean`: removes what the product has left and nobody needs any more."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say
from tallybook.errors import UsageError

_AGE = re.compile(r"[1-9][0-9]{0,4}[dw]")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@app.command()
def clean(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Remove what is older than this, such as 90d or 12w; by default as the settings say."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Remove old logs, sandboxes, staging folders, and files of Delta versions that nothing needs."""
    from tallybook.workspace import Workspace

    if older_than is not None and not _AGE.fullmatch(older_than):
        raise UsageError(f"'{older_than}' is not an age", "write days or weeks, at least 1d, such as --older-than 90d")
    cleanup = Workspace.open(workspace).clean(older_than, dry_run=dry_run)
    if json:
        emit(cleanup)
        return
    for place in cleanup.places:
        if place.files:
            say(f"{place.kind:<8}  {counted(place.files, 'file'):>10}  {_size(place.bytes):>10}  {place.path}")
        if place.left is not None:
            say(f"{place.kind:<8}  stays: {place.path}: {place.left}")
    verb = "would be removed" if dry_run else "removed"
    total = f"{counted(cleanup.files, 'file')}, {_size(cleanup.bytes)}"
    say(f"{verb}: {total}, all older than {older_than or cleanup.older_than}")


def _size(bytes: int) -> str:
    size, unit = float(bytes), _UNITS[0]
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"
