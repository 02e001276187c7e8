"""The app that commands register with, and the options that all commands have.

A new command is a new file in this package with `@app.command()`, and its name in `main.MODULES`. A command calls
`workspace`, prints, and returns its exit code, or nothing for 0. It raises `TallybookError` if something is wrong.
Every command has the option `--env`: for the time of the command, it sets the variable that names the environment.
Heavy imports are inside the commands, so that each command loads only what it uses.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tallybook.cli.help import HelpfulCommand, HelpfulGroup
from tallybook.cli.screen import say
from tallybook.errors import UsageError
from tallybook.project.files import ENVIRONMENT_VARIABLE as VARIABLE

Command = TypeVar("Command", bound=Callable[..., Any])


class App(typer.Typer):
    """An app whose commands all have the option `--env` and plain help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": HelpfulGroup, **options})

    def command(self, *args: Any, **options: Any) -> Callable[[Command], Command]:
        register = super().command(*args, **{"cls": HelpfulCommand, **options})

        def decorate(function: Command) -> Command:
            register(with_environment(function))
            return function

        return decorate


def with_environment(function: Command) -> Callable[..., Any]:
    """Returns the command with one more option, which names the environment for the time of the command."""
    signature = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("env", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=EnvironmentOption)

    @wraps(function)
    def command(*args: Any, env: str | None = None, **options: Any) -> Any:
        before = os.environ.get(VARIABLE)
        try:
            if env is not None:
                os.environ[VARIABLE] = env
            return function(*args, **options)
        finally:
            if env is not None:
                os.environ.pop(VARIABLE)
                os.environ.update({} if before is None else {VARIABLE: before})

    command.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    return command


app = App(
    name="tallybook",
    help="Period calculations on Spark from YAML recipes: checked before they run, repeatable to the cell.",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _or_global(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    """Returns the value given after the command, else the one given before it or before its group."""
    parent = context.parent
    while not value and parent is not None:
        value, parent = parent.params.get(str(option.name)), parent.parent
    return value


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="The workspace; by default the nearest folder with a tallybook.yaml, from the current one upwards.",
        callback=_or_global,
    ),
]
EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help=f"The environment of tallybook.yaml, such as prod; by default the variable {VARIABLE}.",
        callback=_or_global,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, and nothing else.", callback=_or_global)
]

ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="The reason; recorded with the user and the time.")
]


LOG_FORMAT, LOG_FORMAT_VARIABLE = "--log-format", "TALLYBOOK_LOG_FORMAT"


def _show_version(value: bool) -> None:
    if value:
        say(f"tallybook {version('tallybook')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _before_all(
    context: typer.Context,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    log_format: Annotated[
        str,
        typer.Option(
            LOG_FORMAT,
            envvar=LOG_FORMAT_VARIABLE,
            metavar="text|json",
            help="Standard error has lines of text, or one JSON object a line. Also valid after the command.",
        ),
    ] = "text",
    env: EnvironmentOption = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if json:
        raise UsageError("no command is given", "see `tallybook --help`")
    context.get_help()  # Typer prints it
