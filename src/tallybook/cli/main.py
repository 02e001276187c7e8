"""The entry point: runs a command and turns whatever happens into an exit code.

0 fine; 1 the user's project, data or test is wrong; 2 wrong usage; 3 a bug, with its traceback in a log file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from tallybook.cli.app import app
from tallybook.cli.screen import emit, finish, prepare, problems_document, say, say_problems
from tallybook.errors import ProblemError, RunError, TallybookError, UsageError, told_as_bug
from tallybook.text import Marked

MODULES = (
    "init",
    "validate",
    "plan",
    "run",
    "test",
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
    """Runs the command line; the console script exits with what it returns."""
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
    problems = error.problems if isinstance(error, ProblemError) else ()
    facts: dict[str, object] = {}
    if isinstance(error, RunError):
        facts = {"run_id": error.run_id, "log": error.log}
    if as_json:
        if not problems:
            facts = {"error": {"type": type(error).__name__, "message": error.message, "hint": error.hint}}
        emit(problems_document(problems) | {key: value for key, value in facts.items() if value is not None})
        return error.exit_code
    if problems:
        say_problems(problems, error=True)
    else:
        say(f"error: {error.message}", error=True)
        if error.hint:
            say("  ", Marked("hint:", "hint"), f" {error.hint}", error=True)
    if facts.get("log"):
        say(f"  log: {facts['log']}", error=True)
    return error.exit_code


def _crash(error: Exception, as_json: bool) -> int:
    message, log = told_as_bug(error)
    if as_json:
        facts = {"type": "InternalError", "message": message, "hint": f"the traceback is in {log}", "log": log}
        emit(problems_document(()) | {"error": facts})
    else:
        say(f"error: {message}", error=True)
        say(f"  the traceback is in {log}", error=True)
    return 3
