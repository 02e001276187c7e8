"""Runs a command in the standby process, if there is one: it has imported the product already, which takes a second.

`tallybook session start` starts the standby process. It forks for each command, and the fork gets the arguments, the
folder, the environment and the standard streams of the command. This process passes signals on, waits, and returns the
exit code. It imports little, because it is there to be fast.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tallybook.errors import SessionError
from tallybook.exit_codes import UNAVAILABLE
from tallybook.private import cache_folder

COMMANDS = frozenset({"run", "test", "plan", "replay"})
"""The commands that run in the standby process: those that use Spark, or load nearly as much as those do."""
LENGTH_BYTES = 4
PREFIX = "standby-"
_LONGEST_ADDRESS = 100
"""Unix refuses the path of a socket that is longer than about 104 bytes."""
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_OF_PYTHON = ("PYTHON", "LANG", "LC_", "LD_")
"""The environment variables that a process reads when it starts, by the beginning of their names."""


@dataclass(frozen=True)
class Request:
    """A command as the standby process gets it, with the standard streams beside it."""

    arguments: Sequence[str]
    folder: str
    environment: dict[str, str]
    umask: int


def standby_folder() -> Path | None:
    """Returns the folder of the standby process that has the same code and the same kind of environment as this one;
    None if there can be none."""
    cache = cache_folder()
    if cache is None or not hasattr(socket, "send_fds"):
        return None
    folder = cache / f"{PREFIX}{_fingerprint()}"
    return folder if len(os.fsencode(address(folder))) <= _LONGEST_ADDRESS else None


def address(folder: Path) -> Path:
    """Returns the socket on which a standby process takes commands."""
    return folder / "commands"


def run_in_standby(arguments: Sequence[str]) -> int | None:
    """Runs a command in the standby process and returns its exit code; None if this process has to run it.

    Raises SessionError if the process of the command was killed.
    """
    if not arguments or arguments[0] not in COMMANDS or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    folder = standby_folder()
    if folder is None or not address(folder).exists():
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(address(folder)))
            _send(connection, arguments)
            answers = connection.makefile("rb")
            pid = int(answers.readline())
        except (OSError, ValueError):
            return None  # it is ending, and has not started the command
        with _passing_signals_to(pid):
            code = answers.readline()
    if not code:
        raise SessionError("the process of the command was killed", hint="run the command again", exit=UNAVAILABLE)
    return int(code)


def _send(connection: socket.socket, arguments: Sequence[str]) -> None:
    umask = os.umask(0o077)
    os.umask(umask)
    request = Request(arguments, str(Path.cwd()), dict(os.environ), umask)
    message = json.dumps(vars(request)).encode()
    socket.send_fds(connection, [len(message).to_bytes(LENGTH_BYTES, "big")], [0, 1, 2])
    connection.sendall(message)


@contextmanager
def _passing_signals_to(pid: int) -> Iterator[None]:
    """Lets the process of the command end, stop and continue when this process should."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(pid, number)

    def stop(_: int, __: FrameType | None) -> None:
        os.kill(pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(pid, signal.SIGCONT)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fingerprint() -> str:
    """Returns a hash of what this process would import, and of what Python reads when it starts."""
    package = Path(__file__).parents[1]
    sources = sorted(
        (entry.path, entry.stat().st_mtime_ns, entry.stat().st_size)
        for folder, *_ in os.walk(package)
        for entry in os.scandir(folder)
        if entry.name.endswith((".py", ".lark", ".properties"))
    )
    libraries = [(path, Path(path).stat().st_mtime_ns) for path in sys.path if path.endswith("-packages")]
    environment = sorted(item for item in os.environ.items() if item[0].startswith(_OF_PYTHON))
    return hashlib.sha256(repr((sys.executable, sources, libraries, environment)).encode()).hexdigest()[:16]
