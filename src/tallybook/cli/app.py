"""The app that commands register with, and the options that all commands have.

A new command is a new file in this package with `@app.command()`, and its name in `main.MODULES`. A command calls
`workspace.py`, prints, and returns its exit code, or nothing for 0. It raises `TallybookError` if something is wrong.
Heavy imports are inside the commands, so that each command loads only what it uses.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from tallybook.cli.screen import say
from tallybook.errors import UsageError

app = typer.Typer(
    name="tallybook",
    help="Period calculations on Spark from YAML recipes: checked before they run, explained after, repeatable.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _or_global(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    """Returns the value given after the command, else the one given before it."""
    return value or context.find_root().params.get(str(option.name))


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="The workspace; by default the nearest folder upwards with a tallybook.yaml.",
        callback=_or_global,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, and nothing else.", callback=_or_global)
]


def _show_version(value: bool) -> None:
    if value:
        say(f"tallybook {version('tallybook')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _before_all(
    context: typer.Context,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if json:
        raise UsageError("no command is given", "see `tallybook --help`")
    context.get_help()  # Typer prints it
