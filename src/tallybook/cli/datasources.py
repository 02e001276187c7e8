"""`tallybook datasources`: lists the datasources, and connects to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import App, JsonOption, WorkspaceOption, app, with_environment
from tallybook.cli.layout import Column, table
from tallybook.cli.screen import emit, say
from tallybook.text import Marked, Role, padded, printable, width

if TYPE_CHECKING:
    from tallybook.documents.datasources import CheckedDatasource

datasources_app = App(
    help="List the datasources, or connect to them and list what they contain.", invoke_without_command=True
)
app.add_typer(datasources_app, name="datasources")
_ROLES: dict[str, Role] = {"ok": "passed", "warning": "warning", "failed": "failed", "skipped": "faint"}


@datasources_app.callback()
@with_environment
def datasources(context: typer.Context, workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """List the datasources, or connect to them and list what they contain."""
    if context.invoked_subcommand is not None:
        return
    from tallybook.documents.datasources import DatasourceDocument, DatasourceList
    from tallybook.workspace import Workspace

    found = Workspace.open(workspace).datasources()
    listed = DatasourceList(datasources=tuple(map(DatasourceDocument.of, found)))
    if json:
        emit(listed)
        return
    if not listed.datasources:
        say("the workspace has no datasources")
        return
    rows = [
        [
            source.id,
            source.type,
            source.status,
            source.place or "the catalog of the session",
            source.credential_ref or "",
        ]
        for source in listed.datasources
    ]
    count = 5 if any(cells[-1] for cells in rows) else 4
    columns = [Column(title) for title in ("datasource", "type", "status", "place", "credential")[:count]]
    for line in table(columns, [cells[:count] for cells in rows]):
        say(*line)


@datasources_app.command()
def check(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Only these datasources.", autocompletion=completion.datasources),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="The longest time to wait for all answers.")
    ] = 30,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start Spark, for datasources that only Spark can list.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Connect to each datasource, list what it contains and say how long it took."""
    from tallybook.documents.datasources import CheckedDatasources, exit_of_checks
    from tallybook.workspace import Workspace

    checks = Workspace.open(workspace, warm=True).check_datasources(ids or (), spark=spark, seconds=timeout)
    document = CheckedDatasources.of(checks)
    if json:
        emit(document)
        return exit_of_checks(checks).code
    ids_width = max((width(printable(source.id)) for source in document.datasources), default=0)
    types_width = max((len(source.type) for source in document.datasources), default=0)
    for source in document.datasources:
        _say(source, ids_width, types_width)
    if not document.datasources:
        say("the workspace has no datasources")
    return exit_of_checks(checks).code


def _say(source: CheckedDatasource, ids_width: int, types_width: int) -> None:
    name = padded(printable(source.id), ids_width)
    what = f"{name}  {source.type:<{types_width}}  {source.place or ''}".rstrip()
    number = "1 file or table" if source.count == 1 else f"{source.count:,} files or tables"
    answer = f": {number}, {source.duration_ms} ms" if source.result == "ok" else ""
    say(Marked(f"{source.result:<7}", _ROLES[source.result]), f"  {what}{answer}", hang=11)
    if source.message:
        say(f"         {source.message}")
    if source.problem is not None and source.problem.hint:
        say("         ", Marked("hint:", "hint"), f" {source.problem.hint}")
    more = ", …" if source.count > len(source.names) else ""
    if source.names:
        say(f"         {', '.join(source.names)}{more}")
