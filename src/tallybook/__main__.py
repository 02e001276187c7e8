"""The command `tallybook`, `python -m tallybook`, and what `spark-submit` can be given."""

from __future__ import annotations

import sys

from tallybook.engine.standby import run_in_standby
from tallybook.errors import SessionError


def main() -> int:
    """Runs the command line, in the standby process if there is one, and returns the exit code."""
    try:
        code = run_in_standby(sys.argv[1:])
    except SessionError as error:
        from tallybook.cli.screen import say_error

        say_error(error.message, error.hint, exit_code=error.exit.code)
        return error.exit.code
    if code is not None:
        return code
    from tallybook.cli.main import main as run_here

    return run_here()


if __name__ == "__main__":
    sys.exit(main())
