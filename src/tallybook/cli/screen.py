"""The only module that prints: lines for people, or one JSON document.

A line stays one line and cannot control the terminal, whatever text it contains (`tallybook.text`). Only terminals get
colour. When a stream can no longer be written, the command goes on with its work and `finish` reports the failure.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TextIO

import typer

from tallybook.errors import Problem
from tallybook.text import Marked, Role, printable

if TYPE_CHECKING:
    from pydantic import BaseModel

_STYLES: dict[Role, dict[str, object]] = {
    "type": {"fg": "red", "bold": True},
    "caret": {"fg": "red", "bold": True},
    "hint": {"fg": "cyan", "bold": True},
    "difference": {"fg": "red", "bold": True},
    "passed": {"fg": "green", "bold": True},
    "failed": {"fg": "red", "bold": True},
    "faint": {"dim": True},
}
_ASCII = str.maketrans({"─": "-", "→": "->", "…": "..."})
"""ASCII for the signs in our own lines, for terminals that cannot show them. Other text is escaped: `\\xe9`."""
_CLEAR_LINE = "\r\x1b[2K"


def emit(document: BaseModel) -> None:
    """Prints the JSON document of a command. ASCII only, so that no terminal's encoding can break it."""
    from tallybook.documents.base import as_json

    _write("stdout", json.dumps(as_json(document), indent=2) + "\n")


def say(*parts: str | Marked, error: bool = False) -> None:
    """Prints one line for people, on standard output or standard error."""
    stream = sys.stderr if error else sys.stdout
    line = "".join(_shown(part, _is_coloured(stream)) for part in parts)
    _write("stderr" if error else "stdout", line + "\n")


def say_problems(problems: Iterable[Problem], *, error: bool = False) -> None:
    """Prints problems as people read them, with an empty line between them."""
    for index, problem in enumerate(problems):
        if index:
            say(error=error)
        for line in problem.lines():
            say(*line, error=error)


def say_progress(text: str) -> None:
    """Replaces the last line of the terminal with a text that says what is being done."""
    columns = _terminal_columns()
    shown = printable(text)
    shown = shown if len(shown) < columns else f"{shown[: columns - 2]}…"
    _write("stderr", _CLEAR_LINE + _shown(Marked(shown, "faint"), _is_coloured(sys.stderr)))


def clear_progress() -> None:
    """Removes the line of `say_progress`."""
    _write("stderr", _CLEAR_LINE)


def is_watched() -> bool:
    """True if standard error is a terminal, so that progress is worth showing."""
    return sys.stderr is not None and sys.stderr.isatty()


def counted(number: int, what: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def prepare() -> None:
    """Makes the streams escape characters that they cannot encode, and prints logged warnings with `say`.

    The handler belongs to the root logger: `logging.exception(…)` of a library would add one that prints tracebacks.
    """
    if not logging.root.handlers:
        logging.root.addHandler(_Warnings(logging.WARNING))
    session = logging.getLogger("tallybook.session")
    session.setLevel(logging.INFO)
    session.handlers = [_Lines()]
    session.propagate = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> str | None:
    """Writes what is still buffered. Returns why standard output is incomplete, None if it is complete.

    A reader that closed the pipe, such as `head`, is no failure.
    """
    _write("stdout", "")
    _write("stderr", "")
    failure = sys.stdout.failure if isinstance(sys.stdout, _Lost) else None
    return None if failure is None or isinstance(failure, BrokenPipeError) else failure.strerror or str(failure)


_Name = Literal["stdout", "stderr"]


class _Warnings(logging.Handler):
    """Prints logged warnings, except those of py4j: a Java process that is gone or interrupted is a problem of its
    own."""

    def emit(self, record: logging.LogRecord) -> None:
        if "py4j" not in PurePath(record.pathname).parts:
            say(f"warning: {record.getMessage()}", error=True)


class _Lines(logging.Handler):
    """Prints log records as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage(), error=True)


class _Lost(io.TextIOBase):
    """Replaces a stream that can no longer be written; drops what is written to it."""

    def __init__(self, failure: OSError) -> None:
        self.failure = failure

    def write(self, text: str) -> int:
        return len(text)


def _write(name: _Name, text: str) -> None:
    stream: TextIO | None = getattr(sys, name)
    if stream is None:
        return
    try:
        stream.write(text if _has_signs(stream) else text.translate(_ASCII))
        if not text.endswith("\n"):
            stream.flush()
    except OSError as error:
        _give_up(stream)
        setattr(sys, name, _Lost(error))


def _has_signs(stream: TextIO) -> bool:
    try:
        "".join(map(chr, _ASCII)).encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _give_up(stream: TextIO) -> None:
    """Redirects the stream to nothing: Python would fail to flush it when the process ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _shown(part: str | Marked, coloured: bool) -> str:
    if isinstance(part, str):
        return printable(part)
    text = printable(part.text)
    if not coloured or not text:
        return text
    return typer.style(text, **_STYLES[part.role])  # type: ignore[arg-type]  # each is an option of typer.style


def _is_coloured(stream: TextIO | None) -> bool:
    """True if the stream is a terminal and the user has not switched colour off (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream is not None and stream.isatty()


def _terminal_columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
