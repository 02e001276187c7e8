"""The option `--set NAME=VALUE`, which sets parameters of a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tallybook.errors import UsageError

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="The value of a parameter of the project; may be repeated."),
]


def given_parameters(texts: Sequence[str] | None) -> dict[str, str]:
    """Returns the texts of `--set`, by name. Raises UsageError for one without `=`, or a name that is given twice."""
    given: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"'{text}' does not set a parameter", "write --set NAME=VALUE")
        if name.strip() in given:
            raise UsageError(f"parameter '{name.strip()}' is set twice", "keep one --set of it")
        given[name.strip()] = value
    return given
