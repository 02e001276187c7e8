"""The entry point: runs a command and returns its exit code, one of `tallybook.exit_codes`."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

import typer

from tallybook.cli.app import LOG_FORMAT, LOG_FORMAT_VARIABLE, app
from tallybook.cli.screen import (
    LogFormat,
    emit,
    finish,
    logs_json,
    prepare,
    say,
    say_error,
    say_problems,
    say_start,
    use_log_format,
)
from tallybook.errors import ProblemError, RunError, TallybookError, Terminated, UsageError, report_bug
from tallybook.exit_codes import BUG, TERMINATED, WRONG

MODULES = (
    "init",
    "validate",
    "plan",
    "run",
    "test",
    "session",
    "lifecycle",
    "runs",
    "datasets",
    "datasources",
    "period",
    "store",
    "doctor",
    "clean",
    "schema",
    "expr",
)
"""The modules of this package that hold commands, in the order of the help page."""

for _module in MODULES:
    import_module(f"tallybook.cli.{_module}")


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    given = list(sys.argv[1:] if args is None else args)
    as_json = "--json" in given
    prepare(as_json=as_json)
    with _terminable():
        try:
            given, format = _log_format(given)
            use_log_format(format)
            if given and not as_json and not _PRINTED_BY_TYPER.intersection(given):
                say_start()
            code = _run(given, as_json=as_json)
        except UsageError as error:
            code = _fail(error, as_json)
        except Terminated:
            say("terminated", error=True)
            code = TERMINATED.code
    incomplete = finish()
    if incomplete is not None:
        code = code or WRONG.code
        say_error(f"standard output cannot be written: {incomplete}", exit_code=code)
    use_log_format(LogFormat.TEXT)
    return code


_PRINTED_BY_TYPER = frozenset({"-h", "--help", "--install-completion", "--show-completion"})
"""What our line of progress must not be printed into."""


def _log_format(given: list[str]) -> tuple[list[str], LogFormat]:
    """Returns the arguments without the option for the log, and its value: it is valid before and after the command,
    and decides how an error of the arguments is printed."""
    end = given.index("--") if "--" in given else len(given)
    chosen, source, rest = os.environ.get(LOG_FORMAT_VARIABLE) or LogFormat.TEXT, LOG_FORMAT_VARIABLE, list[str]()
    words = iter(given[:end])
    for word in words:
        name, equals, value = word.partition("=")
        if name == LOG_FORMAT:
            chosen, source = value if equals else next(words, ""), LOG_FORMAT
        else:
            rest.append(word)
    if chosen not in set(LogFormat):
        raise UsageError(f"'{chosen}' is not a format of log lines", f"{source} takes {' or '.join(LogFormat)}")
    return [*rest, *given[end:]], LogFormat(chosen)


@contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM end the command like Ctrl-C does: what is under way is cancelled and recorded."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def on_signal(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(given: list[str], *, as_json: bool) -> int:
    try:
        code = app(given, prog_name="tallybook", standalone_mode=False)
    except TallybookError as error:
        return _fail(error, as_json)
    except typer.TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
        return _fail(UsageError(_plain(error.format_message()), f"see `{command} --help`"), as_json)
    except Exception as error:
        return _crash(error, as_json)
    return code if isinstance(code, int) else 0


def _plain(message: str) -> str:
    """Returns a message of Typer about an argument or option, in words that do not come from Python."""
    for pattern, words in _REWORDED:
        if pattern.fullmatch(message):
            return pattern.sub(words, message)
    option, _, reason = message.partition("': ")
    date = _WRONG_DATE.fullmatch(reason)
    least = reason.removeprefix(_TOO_SMALL)
    if date is not None:
        reason = f"{date[1]} is not a date; write it as 2026-01-31"
    elif least != reason:
        reason = f"it must be at least {least}"
    elif reason.startswith("Input should be a valid integer"):
        reason = "it must be a whole number"
    elif reason.startswith("Input should be a valid number"):
        reason = "it must be a number"
    else:
        return message
    return f"{option}': {reason}"


_REWORDED = (
    (re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL), r"unexpected argument: \1"),
    (
        re.compile(r"No such option: (.*) \(Possible options: (.*)\)", re.DOTALL),
        r"there is no option \1; did you mean \2?",
    ),
    (re.compile(r"No such option: (.*)", re.DOTALL), r"there is no option \1"),
)
_WRONG_DATE = re.compile(r"(?:Value error, )?('.*') does not match the formats? '%Y-%m-%d'\.", re.DOTALL)
_TOO_SMALL = "Input should be greater than or equal to "


def _fail(error: TallybookError, as_json: bool) -> int:
    if as_json:
        from tallybook.documents.problems import ErrorDocument

        emit(ErrorDocument.of(error))
        if not logs_json():
            return error.exit.code
    if isinstance(error, ProblemError) and error.problems:
        say_problems(error.problems, error=True)
    else:
        say_error(error.message, error.hint, exit_code=error.exit.code)
    if isinstance(error, RunError) and error.run_id is not None and not logs_json():
        say(f"  `tallybook runs {error.run_id}` shows how far it got", error=True)
    if isinstance(error, RunError) and error.log:
        say(f"  log: {error.log}", error=True)
    return error.exit.code


def _crash(error: Exception, as_json: bool) -> int:
    message, log = report_bug(error)
    if as_json:
        from tallybook.documents.problems import ErrorDocument

        emit(ErrorDocument.of_bug(message, log))
    if not as_json or logs_json():
        say_error(message, exit_code=BUG.code)
        say(f"  the traceback is in {log}", error=True)
    return BUG.code
