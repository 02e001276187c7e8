"""Ctrl-C during a Spark action.

PySpark's own handler cannot do it: it calls the JVM on the connection that is waiting for the running action, which
fails, so the job goes on and holds the cores. Here another thread cancels, and the action itself comes back with an
error, which becomes the `KeyboardInterrupt`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

_SECONDS_BETWEEN = 0.2


@contextmanager
def interruptible(spark: SparkSession) -> Iterator[None]:
    """Make Ctrl-C cancel what Spark does in the block, then leave it with `KeyboardInterrupt`.

    Wrap everything that belongs to one run and look at the outcome outside: inside, a cancelled job looks like a
    failed one. What runs in Python, such as committing a table, is finished first; a second Ctrl-C does not wait.
    Outside the main thread nothing changes: only the main thread gets the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed, left = threading.Event(), threading.Event()

    def on_signal(signum: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()
        threading.Thread(target=_keep_cancelling, args=(spark, left), daemon=True).start()

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    except Exception as error:
        if pressed.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        left.set()
        signal.signal(signal.SIGINT, before)
    if pressed.is_set():
        raise KeyboardInterrupt


def _keep_cancelling(spark: SparkSession, left: threading.Event) -> None:
    """Cancels until the block is left: the signal may come between two jobs."""
    while not left.is_set():
        with contextlib.suppress(Exception):
            spark.interruptAll()
        left.wait(_SECONDS_BETWEEN)
