"""The only module that prints: lines for people, one JSON document, or log lines in JSON.

A line stays one line and cannot control the terminal, whatever text it contains (`tallybook.text`). Only terminals get
colour, and lines that are broken to fit. With `--log-format json` standard error gets log lines instead of lines for
people. When a stream can no longer be written, the command goes on with its work and `finish` reports the failure.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TextIO

import typer

from tallybook.cli.layout import broken, cut_to, duration
from tallybook.errors import Problem
from tallybook.text import Line, Marked, Role, printable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tallybook.documents.logs import Level, LogLine


class LogFormat(StrEnum):
    """What standard error gets: lines for people, or log lines."""

    TEXT = "text"
    JSON = "json"


@dataclass
class _Process:
    format: LogFormat = LogFormat.TEXT
    begun: float = field(default_factory=time.monotonic)


_of_process = _Process()

_STYLES: dict[Role, dict[str, object]] = {
    "type": {"fg": "red", "bold": True},
    "caret": {"fg": "red", "bold": True},
    "hint": {"fg": "cyan", "bold": True},
    "difference": {"fg": "red", "bold": True},
    "passed": {"fg": "green", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "failed": {"fg": "red", "bold": True},
    "title": {"bold": True},
    "label": {"fg": "cyan"},
    "faint": {"dim": True},
}
_ASCII = str.maketrans({"─": "-", "→": "->", "…": "..."})
"""ASCII for the signs in our own lines, for terminals that cannot show them. Other text is escaped: `\\xe9`."""
_USUAL_WIDTH = 80
_PROBLEM_WIDTH = 124
"""The width of a problem that no terminal shows."""
_CLEAR_LINE = "\r\x1b[2K"


def emit(document: BaseModel) -> None:
    """Prints the JSON document of a command. ASCII only, so that no terminal's encoding can break it."""
    from tallybook.documents.base import as_json

    _write("stdout", json.dumps(as_json(document), indent=2) + "\n")


def say(*parts: str | Marked, error: bool = False, hang: int | None = None, whole: bool = False) -> None:
    """Prints one line for people, on standard output or standard error. A terminal gets it in several lines if it is
    too long: all but the first begin with `hang` spaces. A `whole` line is never broken."""
    if error and logs_json():
        text = "".join(part if isinstance(part, str) else part.text for part in parts).strip()
        if text:
            _log("info", "message", text)
        return
    stream, most = (sys.stderr if error else sys.stdout), None if whole else room(error=error)
    coloured = _is_coloured(stream)
    for line in [parts] if most is None else broken(parts, most, hang):
        _write("stderr" if error else "stdout", "".join(_shown(part, coloured) for part in line) + "\n")


def say_lines(lines: Iterable[Line]) -> None:
    """Prints lines on standard output, as they are."""
    for line in lines:
        say(*line, whole=True)


def room(*, error: bool = False) -> int | None:
    """Returns the columns of the terminal that is written to; None if it is no terminal."""
    stream = sys.stderr if error else sys.stdout
    if stream is None or not stream.isatty():
        return None
    return _terminal_columns(stream)


def total_time() -> str:
    """Returns how long the command has taken, with everything that it had to start."""
    return duration(time.monotonic() - _of_process.begun)


def say_total() -> None:
    """Prints on a terminal how long the command has taken. A log has times of its own."""
    if room() is not None:
        say(Marked(f"total time: {total_time()}", "faint"))


def say_problems(problems: Iterable[Problem], *, error: bool = False) -> None:
    """Prints problems as people read them, with an empty line between them."""
    if error and logs_json():
        from tallybook.documents.logs import LogLine

        for problem in problems:
            log(LogLine.of_problem(problem))
        return
    for index, problem in enumerate(problems):
        if index:
            say(error=error)
        for line in problem.lines(room(error=error) or _PROBLEM_WIDTH):
            say(*line, error=error)


def say_error(message: str, hint: str | None = None, *, exit_code: int) -> None:
    """Prints what ended the command, on standard error."""
    if logs_json():
        _log("error", "error", message, hint=hint, exit_code=exit_code)
        return
    say(Marked("error:", "failed"), f" {message}", error=True)
    if hint:
        say("  ", Marked("hint:", "hint"), f" {hint}", error=True)


def say_warning(message: str) -> None:
    """Prints a warning on standard error."""
    if logs_json():
        _log("warning", "warning", message)
    else:
        say(Marked("warning:", "warning"), f" {message}", error=True)


def log(line: LogLine) -> None:
    """Writes a log line on standard error, as JSON. ASCII only, like `emit`."""
    from tallybook.documents.base import as_json

    _write("stderr", json.dumps(as_json(line)) + "\n")


def _log(level: Level, event: str, message: str, **details: object) -> None:
    from tallybook.documents.logs import LogLine

    log(LogLine.now(level, event, message, **details))


def use_log_format(format: LogFormat) -> None:
    """Chooses what standard error gets."""
    _of_process.format = format


def logs_json() -> bool:
    """True if standard error gets log lines in JSON."""
    return _of_process.format is LogFormat.JSON


def say_progress(text: str) -> None:
    """Replaces the last line of the terminal with a text that says what is being done. After some seconds the line
    also says how long that has taken. It is removed before anything else is printed."""
    _progress.show(text)


def say_start() -> None:
    """Says on a terminal that a command has begun, if it has printed nothing after a moment."""
    _of_process.begun = time.monotonic()
    if is_watched():
        _progress.show("reading the workspace …", after=_MOMENT)


def clear_progress() -> None:
    """Removes the line of `say_progress`."""
    _progress.clear()


def is_watched() -> bool:
    """True if a person watches standard error: it is a terminal that can erase a line, and gets no log lines."""
    return not logs_json() and os.environ.get("TERM") != "dumb" and sys.stderr is not None and sys.stderr.isatty()


def counted(number: int, what: str) -> str:
    """`1 problem`, `2,000 problems`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def prepare(*, as_json: bool = False) -> None:
    """Makes the streams escape characters that they cannot encode, and prints logged warnings with `say`. A JSON
    document names the environment itself.

    The handler belongs to the root logger: `logging.exception(…)` of a library would add one that prints tracebacks.
    """
    if not logging.root.handlers:
        logging.root.addHandler(_Warnings(logging.WARNING))
    for name in ("tallybook.session", "tallybook.workspace"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING if as_json and name == "tallybook.workspace" else logging.DEBUG)
        logger.handlers = [_Lines()]
        logger.propagate = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def reopen_streams() -> None:
    """Opens the standard streams anew, in a process whose file descriptors were replaced: a pipe is not written like a
    file or a terminal."""
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
    output = os.fdopen(1, "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(output, line_buffering=output.isatty())
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), line_buffering=True)


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
            say_warning(record.getMessage())


class _Lines(logging.Handler):
    """Prints log records as they are. Records for debugging say what is being done."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno > logging.DEBUG:
            say(record.getMessage(), error=True)
        elif is_watched():
            say_progress(record.getMessage())


class _ProgressLine:
    """The line that says what is being done. A thread draws it again every second, with the time that it has taken."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._text: str | None = None
        self._since = 0.0
        self._is_drawn = False
        self._ticking = False

    def show(self, text: str, *, after: float = 0.0) -> None:
        """Shows a text, the first time after so many seconds."""
        with self._lock:
            if text != self._text:
                self._text, self._since = text, time.monotonic()
            if not after:
                self._draw()
            if not self._ticking:
                self._ticking = True
                threading.Thread(target=self._tick, args=[after or 1.0], name="progress", daemon=True).start()

    def clear(self) -> None:
        with self._lock:
            self._text = None
            if self._is_drawn:
                self._is_drawn = False
                _put("stderr", _CLEAR_LINE)

    def _tick(self, seconds: float) -> None:
        while True:
            time.sleep(seconds)
            seconds = 1.0
            with self._lock:
                if self._text is None:
                    self._ticking = False
                    return
                self._draw()

    def _draw(self) -> None:
        seconds = int(time.monotonic() - self._since)
        time_taken = f" {seconds} s" if seconds >= _SECONDS_UNTIL_TIME else ""
        most = _terminal_columns(sys.stderr) - len(time_taken) - 1
        shown = cut_to(printable(self._text or ""), most)
        self._is_drawn = True
        _put("stderr", _CLEAR_LINE + _shown(Marked(shown + time_taken, "faint"), _is_coloured(sys.stderr)))


_SECONDS_UNTIL_TIME = 3
_MOMENT = 0.3
"""Seconds after which a person wonders whether a command has begun."""
_progress = _ProgressLine()


class _Lost(io.TextIOBase):
    """Replaces a stream that can no longer be written; drops what is written to it."""

    def __init__(self, failure: OSError) -> None:
        self.failure = failure

    def write(self, text: str) -> int:
        return len(text)


def _write(name: _Name, text: str) -> None:
    """Writes text, after the line that says what is being done is removed."""
    clear_progress()
    _put(name, text)


def _put(name: _Name, text: str) -> None:
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


def _terminal_columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH
