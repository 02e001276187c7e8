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

    with Workspace.open(workspace).existing_store() as store:
        recorded = store.all_latest("dataset") if store is not None else ()
        if dataset is None:
            facts = [_facts(store, each) for each in recorded] if store is not None else []
            if json:
                emit({"datasets": facts})
                return
            for each in facts:
                say(f"{each['id']}  {counted(each['version'], 'version')}  {each['status']}  {_origin(each)}")
            if not recorded:
                say("no datasets are recorded; `tallybook apply` records the files")
            return
        versions = store.versions("dataset", dataset) if store is not None else ()
        if store is None or not versions:
            hint = did_you_mean(dataset, [each.id for each in recorded])
            raise fail("DatasetNotFound", f"no dataset '{dataset}' is recorded", hint=hint or "run `tallybook apply`")
        facts = [_facts(store, each) for each in versions]
    if json:
        emit({"dataset": dataset, "versions": facts})
        return
    for each in facts:
        _say_version(each)


def _facts(store: Store, definition: Definition) -> dict[str, Any]:
    made = store.registration(definition.id, definition.version)
    return {
        "id": definition.id,
        "version": definition.version,
        "status": definition.body.get("status", "active"),
        "created_at": definition.created_at,
        "definition": definition.body,
        "registered_by": {"run_id": made.run_id, "seq": made.seq} if made else None,
        "reads": made.reads if made else None,
    }


def _origin(facts: dict[str, Any]) -> str:
    made = facts["registered_by"]
    return f"registered by run {made['run_id']}, output {made['seq']}" if made else "from a file"


def _say_version(facts: dict[str, Any]) -> None:
    say(f"{facts['id']} v{facts['version']}, {facts['created_at']:%Y-%m-%d %H:%M:%S}, {_origin(facts)}")
    reads = facts["reads"]
    if reads is not None:
        pinned = f" at version {reads['version']}" if reads.get("version") is not None else ""
        say(f"  rows: {reads['source']['type']} {reads['target']}{pinned}")
    table = facts["definition"]["main_table"]
    say(f"  table {table['name']}, temporal mode {table.get('temporal_mode', 'none')}")
    for column in table["columns"]:
        say(f"    {column['name']} {column['type']}")
    for lookup in facts["definition"].get("lookups", ()):
        target = lookup["target"]
        say(f"  lookup {lookup['alias']}: {target.get('dataset_id') or 'table ' + target['name']}")
