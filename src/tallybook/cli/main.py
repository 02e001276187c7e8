"""The entry point: runs a command and returns its exit code.

0 fine; 1 the user's project, data or test is wrong; 2 wrong usage; 3 a bug, with its traceback in a log file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from tallybook.cli.app import app
from tallybook.cli.screen import emit, finish, prepare, say, say_problems
from tallybook.errors import ProblemError, RunError, TallybookError, UsageError, report_bug
from tallybook.text import Marked

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
    "period",
    "store",
    "schema",
    "expr",
)
"""The modules of this package that hold commands, in the order of the help page."""

for _module in MODULES:
    import_module(f"tallybook.cli.{_module}")


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    given = list(sys.argv[1:] if args is None else args)
    prepare()
    code = _run(given, as_json="--json" in given)
    incomplete = finish()
    if incomplete is None:
        return code
    say(f"error: standard output cannot be written: {incomplete}", error=True)
    return code or 1


def _run(given: list[str], *, as_json: bool) -> int:
    try:
        code = app(given, prog_name="tallybook", standalone_mode=False)
    except TallybookError as error:
        return _fail(error, as_json)
    except typer.TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
        return _fail(UsageError(error.format_message(), f"see `{command} --help`"), as_json)
    except Exception as error:
        return _crash(error, as_json)
    return code if isinstance(code, int) else 0


def _fail(error: TallybookError, as_json: bool) -> int:
    if as_json:
        from tallybook.documents.problems import ErrorDocument

        emit(ErrorDocument.of(error))
        return error.exit_code
    if isinstance(error, ProblemError) and error.problems:
        say_problems(error.problems, error=True)
    else:
        say(f"error: {error.message}", error=True)
        if error.hint:
            say("  ", Marked("hint:", "hint"), f" {error.hint}", error=True)
    if isinstance(error, RunError) and error.log:
        say(f"  log: {error.log}", error=True)
    return error.exit_code


def _crash(error: Exception, as_json: bool) -> int:
    message, log = report_bug(error)
    if as_json:
        from tallybook.documents.problems import ErrorDocument

        emit(ErrorDocument.of_bug(message, log))
    else:
        say(f"error: {message}", error=True)
        say(f"  the traceback is in {log}", error=True)
    return 3
