"""How commands show their arguments in `--help`: in words for people, without the types of Python."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


class _Plain:
    """Flags are alone, other options have one word for their value, and arguments are one word."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_plain(param) for param in super().get_params(ctx)]  # type: ignore[misc]  # of the class it is mixed with


class HelpfulCommand(_Plain, TyperCommand):
    """A command with plain help."""


class HelpfulGroup(_Plain, TyperGroup):
    """A group of commands with plain help."""


class _Argument(TyperArgument):
    """An argument without a type."""

    def display_type_rich(self, ctx: Any) -> str | None:
        return None


class _Option(TyperOption):
    """An option without the range of its numbers, such as `[x>=1]`: a number outside is refused in words."""

    def _get_number_range_help_str(self) -> str | None:
        return None


def _plain(param: Any) -> Any:
    if isinstance(param, TyperArgument):
        param.__class__ = _Argument
    elif isinstance(param, TyperOption):
        param.__class__ = _Option
    if param.metavar is None:
        is_flag = isinstance(param, TyperOption) and param.is_flag
        param.metavar = "" if is_flag else str(param.name).upper()
    return param
