"""`tallybook expr`: explains an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import emit, say
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from tallybook.documents.definitions import ExpressionMeaning


@app.command()
def expr(
    expression: Annotated[str, typer.Argument(help='The expression, in quotes: \'IF(amount > 0, "in", "out")\'.')],
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            "-d",
            help="The dataset whose columns and lookups it may read.",
            autocompletion=completion.datasets,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Check an expression, and show its type, the functions it calls and the columns it reads."""
    from tallybook.documents.definitions import ExpressionMeaning
    from tallybook.project.explain import explain
    from tallybook.workspace import Workspace

    explanation = Workspace.open(workspace).explain(expression, dataset) if dataset else explain(expression)
    meaning = ExpressionMeaning.of(explanation)
    if json:
        emit(meaning)
        return
    for line in _lines(meaning):
        say(line, hang=_TEXT_AT + 2)


_TEXT_AT = 12


def _lines(meaning: ExpressionMeaning) -> list[str]:
    type = meaning.type or "depends on its columns: name their dataset with --dataset"
    lines = [f"expression  {meaning.expression}", f"type        {type}"]
    if meaning.aggregate:
        lines.append("use         in `aggregate`, or in the `aggregation` of a source")
    if meaning.hint:
        lines.append(f"hint        {meaning.hint}")
    lines += _listed("columns", [(column.name, column.type or "") for column in meaning.columns])
    lines += _listed("functions", [(function.signature, function.meaning) for function in meaning.functions])
    return [line.rstrip() for line in lines]


def _listed(title: str, rows: list[tuple[str, str]]) -> list[str]:
    names = [printable(name) for name, _ in rows]
    widest = max(map(width, names), default=0)
    titles = [title, *[""] * len(rows)]
    return [f"{titles[i]:<{_TEXT_AT}}{padded(name, widest)}  {rows[i][1]}" for i, name in enumerate(names)]
