"""The process `python -m tallybook.standby`: has the command line imported, and forks for each command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from tallybook.cli.main import main as run_command
from tallybook.cli.screen import reopen_streams
from tallybook.engine.standby_server import serve
from tallybook.expressions.parse import parse

_LATER = (
    "pyspark.sql.connect.session",
    "sqlalchemy.dialects.sqlite",
    "tallybook.cli.watch",
    "tallybook.documents.runs",
    "tallybook.runs.batch",
    "tallybook.runs.replay",
    "tallybook.runs.runner",
    "tallybook.scenarios.suite",
    "tallybook.workspace",
)
"""What commands import only when they need it."""


def main() -> int:
    """Takes commands until the user has no warm session."""
    for module in _LATER:
        import_module(module)
    parse("TRUE")  # makes the parser from its grammar
    return serve(_run)


def _run(arguments: Sequence[str]) -> int:
    reopen_streams()
    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
