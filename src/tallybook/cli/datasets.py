"""`tallybook datasets`: recorded datasets and their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.layout import Column, table
from tallybook.cli.screen import emit, say
from tallybook.text import Marked

if TYPE_CHECKING:
    from tallybook.documents.definitions import DatasetVersionDocument


@app.command()
def datasets(
    dataset: Annotated[
        str | None, typer.Argument(help="Show the versions of this dataset.", autocompletion=completion.datasets)
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List recorded datasets, or the versions of one with schema, location and the run that made it."""
    from tallybook.documents.definitions import DatasetList, DatasetVersions
    from tallybook.workspace import Workspace

    opened = Workspace.open(workspace)
    if dataset is not None:
        history = DatasetVersions.of(opened.dataset_versions(dataset))
        if json:
            emit(history)
            return
        shown: DatasetVersionDocument | None = None
        for version in history.versions:
            is_same = shown is not None and shown.definition == version.definition
            _say_version(version, shown if is_same else None)
            shown = shown if is_same else version
        return
    latest = DatasetList.of(opened.datasets())
    if json:
        emit(latest)
        return
    if not latest.datasets:
        say("no datasets are recorded; `tallybook apply` records the files")
        return
    columns = [Column("dataset"), Column("versions", right=True), Column("status"), Column("origin")]
    rows = [[version.id, f"{version.version:,}", version.status, version.origin] for version in latest.datasets]
    for line in table(columns, rows):
        say(*line)


def _say_version(version: DatasetVersionDocument, same: DatasetVersionDocument | None) -> None:
    """Prints a version. Instead of the columns it names an earlier version with the same definition, if given."""
    say(
        Marked(f"{version.id} v{version.version}", "title"),
        f", {version.created_at:%Y-%m-%d %H:%M:%S} UTC, {version.origin}",
    )
    reads = version.reads
    if reads is not None:
        pinned = f" at version {reads['version']}" if reads.get("version") is not None else ""
        say(f"  rows: {reads['source']['type']} {reads['target']}{pinned}")
    if same is not None:
        say(f"  columns as in v{same.version}")
        return
    table = version.definition["main_table"]
    say(f"  table {table['name']}, temporal mode {table.get('temporal_mode', 'none')}")
    for column in table["columns"]:
        say(f"    {column['name']} {column['type']}")
    for lookup in version.definition.get("lookups", ()):
        target = lookup["target"]
        say(f"  lookup {lookup['alias']}: {target.get('dataset_id') or 'table ' + target['name']}")
