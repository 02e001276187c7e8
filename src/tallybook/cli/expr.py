"""`tallybook expr`: what an expression means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from tallybook.project.explain import Explanation


@app.command()
def expr(
    expression: Annotated[str, typer.Argument(help='The expression, in quotes: \'IF(amount > 0, "in", "out")\'.')],
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="The dataset whose columns and lookups it may read.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Check an expression and say what it means: its type, the functions it calls, the columns it reads."""
    from tallybook.project.explain import explain
    from tallybook.workspace import Workspace

    scope = Workspace.open(workspace).scope_of(dataset) if dataset else None
    found = explain(expression, scope)
    if json:
        emit(_document(found))
    else:
        for line in _lines(found):
            say(line)


def _document(found: Explanation) -> dict[str, object]:
    return {
        "expression": found.text,
        "type": found.type and str(found.type),
        "aggregate": found.aggregate,
        "functions": [
            {"name": one.name, "signature": one.signature, "meaning": one.summary} for one in found.functions
        ],
        "columns": [{"name": name, "type": type and str(type)} for name, type in found.columns.items()],
        "problems": [],
        "count": 0,
    }


def _lines(found: Explanation) -> list[str]:
    type = "depends on its columns: name their dataset with --dataset" if found.type is None else str(found.type)
    lines = [f"expression  {found.text}", f"type        {type}"]
    if found.aggregate:
        lines.append("use         in `aggregate`, or in the `aggregation` of `append`")
    lines += _listed("columns", [(name, str(type or "")) for name, type in found.columns.items()])
    lines += _listed("functions", [(one.signature, one.summary) for one in found.functions])
    return [line.rstrip() for line in lines]


def _listed(title: str, rows: list[tuple[str, str]]) -> list[str]:
    names = [printable(name) for name, _ in rows]
    widest = max(map(width, names), default=0)
    titles = [title, *[""] * len(rows)]
    return [f"{titles[i]:<12}{padded(name, widest)}  {rows[i][1]}" for i, name in enumerate(names)]
