"""Warm sessions: a Spark Connect server that stays between commands, so that the next one need not start Spark.

There is one for each user, machine and set of settings. Its files are in a private folder, because the token in them
lets a process do what the user may do:

- `session.json` describes it, as long as it takes commands;
- `server.lock` is locked by the server while it lives;
- `use.lock` is locked, shared, by each command that uses it.

A lock ends with the process that holds it, however that ends. So nobody waits for a dead server or a dead command.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tallybook.engine.background import start_module
from tallybook.engine.java import choose_java
from tallybook.engine.launch import TOKEN_VARIABLE, start_connect
from tallybook.engine.locks import lock, locked
from tallybook.engine.properties import read_submission, spark_home
from tallybook.errors import SessionError
from tallybook.exit_codes import BUSY, UNAVAILABLE
from tallybook.model.settings import SparkSettings
from tallybook.private import cache_folder, make_private_file, make_private_folder

logger = logging.getLogger("tallybook.session")
"""Says in one line which session a command uses. The command line prints it."""
ANOTHER_STARTS = 3
"""The exit code of a server that finds another one starting."""
_PREFIX = "session-"
_SECONDS_TO_START = 180
_SECONDS_TO_STOP = 30
_SECONDS_TO_ANSWER = 10
_SECONDS_TO_LOCK = 3


@dataclass(frozen=True)
class Running:
    """A warm session that takes commands."""

    pid: int
    port: int
    token: str
    since: str
    idle_minutes: int
    master: str
    java: str
    spark: str


@dataclass(frozen=True)
class WarmSession:
    """The warm session of one set of settings, running or not."""

    folder: Path

    @property
    def description(self) -> Path:
        return self.folder / "session.json"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def failure(self) -> Path:
        """Why the server did not start."""
        return self.folder / "failure.json"

    @property
    def use_lock(self) -> Path:
        return self.folder / "use.lock"

    @property
    def server_lock(self) -> Path:
        return self.folder / "server.lock"

    def running(self) -> Running | None:
        """Returns the session if its server lives. Removes what a dead one has left."""
        try:
            running = Running(**json.loads(self.description.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        with locked(self.server_lock, shared=True) as dead:
            if dead:
                self.description.unlink(missing_ok=True)
                return None
        return running

    def is_in_use(self) -> bool:
        """True if a command uses the session."""
        with locked(self.use_lock) as free:
            return not free

    def publish(self, running: Running) -> None:
        """Lets commands use the session."""
        new = self.description.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(json.dumps(asdict(running)), encoding="utf-8")
        new.replace(self.description)


def find_warm(settings: SparkSettings) -> WarmSession | None:
    """Returns the warm session for these settings, running or not; None if there can be none.

    A session is bound to all that its results or its classes depend on.
    """
    if settings.remote or "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    java, submission = choose_java(), read_submission()
    bound_to = [
        socket.gethostname(),
        str(Path(sys.prefix).resolve()),
        str(Path(__file__).resolve().parent),
        version("tallybook"),
        str(java.home),
        java.version,
        str(spark_home()),
        pyspark.__version__,
        settings.model_dump(),
        dict(submission.conf),
        submission.arguments,
    ]
    key = hashlib.sha256(json.dumps(bound_to, sort_keys=True).encode()).hexdigest()[:16]
    cache = cache_folder()
    return WarmSession(cache / f"{_PREFIX}{key}") if cache is not None else None


def all_warm(settings: SparkSettings) -> Iterator[tuple[WarmSession, Running, bool]]:
    """Yields the running warm sessions of this user, and whether each is the one for these settings."""
    own, cache = find_warm(settings), cache_folder()
    for folder in sorted(cache.glob(f"{_PREFIX}*")) if cache is not None else ():
        session = WarmSession(folder)
        running = session.running()
        if running is not None:
            yield session, running, session == own


def any_warm() -> bool:
    """True if a warm session of this user runs, with any settings."""
    cache = cache_folder()
    folders = cache.glob(f"{_PREFIX}*") if cache is not None else ()
    return any(WarmSession(folder).running() for folder in folders)


def start_warm(settings: SparkSettings, idle_minutes: int) -> tuple[WarmSession, Running]:
    """Starts the warm session for these settings and waits until it takes commands. One that runs is left as it is."""
    session = find_warm(settings)
    if session is None:
        raise SessionError(
            "no warm session can be kept here: the workspace uses a Spark that runs elsewhere, or the cache folder of "
            "the user cannot be used",
            hint="remove `spark.remote`, or set XDG_CACHE_HOME to a folder that only you can write to",
        )
    if running := session.running():
        return session, running
    make_private_folder(session.folder)
    with make_private_file(session.log).open("ab") as log:
        server = start_module("tallybook.engine.warm_server", session.folder, log)
    assert server.stdin is not None
    given = {"settings": settings.model_dump(), "idle_minutes": idle_minutes}
    with suppress(BrokenPipeError), server.stdin as pipe:
        pipe.write(json.dumps(given).encode())
    return session, _wait_for_start(session, server)


def stop_warm(session: WarmSession, *, now: bool = False) -> Running | None:
    """Ends a warm session and returns it. Raises SessionError if a command uses it, unless `now`."""
    with locked(session.use_lock, seconds=_SECONDS_TO_LOCK) as free:
        running = session.running()
        if running is None:
            return None
        if not free and not now:
            raise SessionError(
                f"the warm session (pid {running.pid}) is in use",
                hint="wait until the command ends, or add --now",
                exit=BUSY,
            )
        session.description.unlink(missing_ok=True)
        for send in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.kill(running.pid, send)
            with locked(session.server_lock, shared=True, seconds=_SECONDS_TO_STOP) as ended:
                if ended:
                    break
        return running


def use_warm(settings: SparkSettings, conf: Mapping[str, str]) -> SparkSession | None:
    """Returns a session of this process on the warm session for these settings, with `conf` set in it.

    Returns None if there is no warm session, or if it does not answer.
    """
    warm = find_warm(settings)
    if warm is None or not warm.description.exists():
        return None
    use = lock(warm.use_lock, shared=True, seconds=_SECONDS_TO_LOCK)
    running = warm.running() if use is not None else None
    if use is None or running is None:
        return None
    from grpc import RpcError

    os.environ[TOKEN_VARIABLE] = running.token
    try:
        spark = start_connect(f"sc://localhost:{running.port}", conf, warm.log, seconds=_SECONDS_TO_ANSWER)
    except (SessionError, PySparkException, RpcError):
        use.close()
        del os.environ[TOKEN_VARIABLE]
        logger.info("The warm session (pid %d) does not answer; starting Spark.", running.pid)
        return None
    atexit.register(_leave, spark, use)
    since = datetime.fromisoformat(running.since)
    logger.info("Using the warm session (pid %d, since %s).", running.pid, f"{since:%Y-%m-%d %H:%M:%S} UTC")
    return spark


def _leave(spark: SparkSession, use: IO[bytes]) -> None:
    """Frees what the command had on the server, and notes when it ended."""
    with suppress(Exception):
        spark.stop()
    with suppress(OSError):
        os.utime(use.name)
    use.close()


def _wait_for_start(session: WarmSession, server: subprocess.Popen[bytes]) -> Running:
    last = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < last:
        running = session.running()
        if running is not None:
            return running
        if server.poll() not in (None, ANOTHER_STARTS):
            break
        time.sleep(0.1)
    server.kill()
    with suppress(OSError, ValueError, KeyError):
        failure = json.loads(session.failure.read_text(encoding="utf-8"))
        raise SessionError(failure["message"], hint=failure["hint"], exit=UNAVAILABLE)
    raise SessionError("the warm session did not start", hint=f"its log is {session.log}", exit=UNAVAILABLE)
