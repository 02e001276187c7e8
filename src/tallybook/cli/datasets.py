"""`datasets`: what there is, in which versions, with which schema, and which run made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say

if TYPE_CHECKING:
    from tallybook.model.state import Definition
    from tallybook.store.store import Store


@app.command()
def datasets(
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Show its versions.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List recorded datasets, or the versions of one with schema, place and the run that made it."""
    from tallybook.errors import did_you_mean, fail
    from tallybook.workspace import Workspace

    with Workspace.open(workspace).store() as store:
        if dataset is None:
            found = store.all_latest("dataset")
            if json:
                emit({"datasets": [_facts(store, each) for each in found]})
                return
            for each in found:
                status = each.body.get("status", "active")
                say(f"{each.id}  {counted(each.version, 'version')}  {status}  {_origin(store, each)}")
            if not found:
                say("no datasets are recorded; `tallybook apply` records the files")
            return
        versions = store.versions("dataset", dataset)
        if not versions:
            known = [each.id for each in store.all_latest("dataset")]
            raise fail("DatasetNotFound", f"no dataset '{dataset}' is recorded", hint=did_you_mean(dataset, known))
        if json:
            emit({"dataset": dataset, "versions": [_facts(store, each) for each in versions]})
            return
        for each in versions:
            _say_version(store, each)


def _facts(store: Store, definition: Definition) -> dict[str, Any]:
    made = store.registration(definition.id, definition.version)
    return {
        "id": definition.id,
        "version": definition.version,
        "created_at": definition.created_at,
        "definition": definition.body,
        "registered_by": {"run_id": made.run_id, "seq": made.seq} if made else None,
        "reads": made.reads if made else None,
    }


def _origin(store: Store, definition: Definition) -> str:
    made = store.registration(definition.id, definition.version)
    return f"registered by run {made.run_id}, output {made.seq}" if made else "from a file"


def _say_version(store: Store, definition: Definition) -> None:
    made_at = f"{definition.created_at:%Y-%m-%d %H:%M:%S}"
    say(f"{definition.id} v{definition.version}, {made_at}, {_origin(store, definition)}")
    made = store.registration(definition.id, definition.version)
    if made is not None:
        pinned = f" at version {made.reads['version']}" if made.reads.get("version") is not None else ""
        say(f"  rows: {made.reads['source']['type']} {made.reads['target']}{pinned}")
    table = definition.body["main_table"]
    say(f"  table {table['name']}, temporal mode {table.get('temporal_mode', 'none')}")
    for column in table["columns"]:
        say(f"    {column['name']} {column['type']}")
