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
    for line, hang in _lines(meaning):
        say(line.rstrip(), hang=hang)


_TEXT_AT = 12


def _lines(meaning: ExpressionMeaning) -> list[tuple[str, int]]:
    """Returns the lines, each with the column where it goes on if it is too long."""
    type = meaning.type or "depends on its columns: name their dataset with --dataset"
    lines = [f"expression  {meaning.expression}", f"type        {type}"]
    if meaning.aggregate:
        lines.append("use         in `aggregate`, or in the `aggregation` of a source")
    if meaning.hint:
        lines.append(f"hint        {meaning.hint}")
    return [
        *((line, _TEXT_AT + 2) for line in lines),
        *_listed("columns", [(column.name, column.type or "") for column in meaning.columns]),
        *_listed("functions", [(function.signature, function.meaning) for function in meaning.functions]),
    ]


def _listed(title: str, rows: list[tuple[str, str]]) -> list[tuple[str, int]]:
    names = [printable(name) for name, _ in rows]
    widest = max(map(width, names), default=0)
    titles = [title, *[""] * len(rows)]
    beside = _TEXT_AT + widest + 2
    hang = beside if beside <= _MOST_HANG else _TEXT_AT + 2
    return [(f"{titles[i]:<{_TEXT_AT}}{padded(name, widest)}  {rows[i][1]}", hang) for i, name in enumerate(names)]


_MOST_HANG = 40
"""Where a long name leaves too little room beside it, texts go on below the name."""
