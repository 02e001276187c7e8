"""The frame of the command line: the app commands add themselves to, and the options all of them have.

A new command is one file beside this one with `@app.command()`, and its name in `main.MODULES`. A command returns its
exit code, or nothing for 0; it raises `TallybookError` for what is wrong. Heavy imports stand inside the commands, so
that each pays for what it uses.
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
    """The option as given after the command, else as given before it."""
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
