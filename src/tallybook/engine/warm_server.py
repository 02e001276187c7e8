"""The process of a warm session: `python -m tallybook.engine.warm_server`, in the folder of the session.

It reads the settings from its standard input, starts a Spark Connect server, and ends when no command has used it for
the idle time, or on SIGTERM. Spark's JVM ends with this process, even if it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tallybook.engine.java import choose_java
from tallybook.engine.launch import TOKEN_VARIABLE
from tallybook.engine.locks import lock, locked
from tallybook.engine.session import start_server
from tallybook.engine.warm import ANOTHER_STARTS, Running, WarmSession
from tallybook.errors import SessionError
from tallybook.model.settings import SparkSettings

_SECONDS_TO_LOCK = 2
_SECONDS_BETWEEN_LOOKS = 1


def main() -> int:
    """Keeps the session of the current folder until it is idle or stopped."""
    given = json.load(sys.stdin)
    warm = WarmSession(Path.cwd())
    alive = lock(warm.server_lock, seconds=_SECONDS_TO_LOCK)
    if alive is None:
        return ANOTHER_STARTS
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    os.environ.pop(TOKEN_VARIABLE, None)
    warm.failure.unlink(missing_ok=True)
    try:
        spark, port = start_server(SparkSettings.model_validate(given["settings"]), warm.log)
    except SessionError as error:
        warm.failure.write_text(json.dumps({"message": error.message, "hint": error.hint}), encoding="utf-8")
        return 1
    java = choose_java()
    running = Running(
        pid=os.getpid(),
        port=port,
        token=os.environ[TOKEN_VARIABLE],
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        idle_minutes=given["idle_minutes"],
        master=spark.conf.get("spark.master") or "",
        java=java.version,
        spark=pyspark.__version__,
    )
    try:
        warm.publish(running)
        _keep(warm, running, spark, stopped)
    finally:
        warm.description.unlink(missing_ok=True)
        spark.stop()
    return 0


def _keep(warm: WarmSession, running: Running, spark: SparkSession, stopped: threading.Event) -> None:
    """Returns when the session is idle for long, is stopped, or Spark has died. Frees what commands left in memory."""
    warm.use_lock.touch(mode=0o600)
    cleared = time.time()
    jvm = SparkContext._gateway.proc  # type: ignore[union-attr]  # it runs
    while not stopped.wait(_SECONDS_BETWEEN_LOOKS) and jvm.poll() is None:
        with locked(warm.use_lock) as free:
            if not free:
                os.utime(warm.use_lock)
                continue
            last_used = warm.use_lock.stat().st_mtime
            if cleared < last_used:
                spark.catalog.clearCache()
                cleared = time.time()
            if time.time() - last_used > running.idle_minutes * 60:
                warm.description.unlink(missing_ok=True)
                return


if __name__ == "__main__":
    sys.exit(main())
