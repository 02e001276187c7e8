"""What reaches the screen: text for people, coloured on terminals only, or one JSON document."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

import typer

from tallybook.errors import Problem


def emit(document: Mapping[str, object]) -> None:
    """The JSON document of a command. ASCII only, so that no terminal's encoding can break it."""
    sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")


def say(text: str = "", *, error: bool = False) -> None:
    """A line for people, on standard output or standard error."""
    print(text, file=sys.stderr if error else sys.stdout)


def problems_document(problems: Iterable[Problem]) -> dict[str, object]:
    """The documented JSON form of problems."""
    listed = [problem.to_json() for problem in problems]
    return {"problems": listed, "count": len(listed)}


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Text of users' files without what could command a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say_problems(problems: Iterable[Problem], *, error: bool = False) -> None:
    """Problems as people read them, an empty line between."""
    coloured = is_coloured(sys.stderr if error else sys.stdout)
    for index, problem in enumerate(problems):
        if index:
            say(error=error)
        text = printable(str(problem))
        say(_coloured(text) if coloured else text, error=error)


def counted(number: int, what: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def is_coloured(stream: TextIO) -> bool:
    """Colour is for terminals whose user did not ask for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


_TYPE = re.compile(r"(?<=: )(?P<type>[A-Z]\w+)|^(?P<bare>[A-Z]\w+)")


def _coloured(text: str) -> str:
    head, *rest = text.split("\n")
    coloured = _TYPE.sub(lambda match: typer.style(match[0], fg="red", bold=True), head, count=1)
    return "\n".join([coloured, *map(_coloured_line, rest)])


def _coloured_line(line: str) -> str:
    if line.strip() and not line.strip().strip("^"):
        return typer.style(line, fg="red", bold=True)
    if line.startswith("  hint: "):
        return "  " + typer.style("hint:", fg="cyan", bold=True) + line.removeprefix("  hint:")
    return line
