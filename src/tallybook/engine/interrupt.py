"""Ctrl-C and SIGTERM during a Spark action.

PySpark's own handler cannot do it: it calls the JVM on the connection that is waiting for the running action, which
fails, so the job goes on and holds the cores. Here another thread cancels, and the action itself comes back with an
error, which becomes the `KeyboardInterrupt` or, after SIGTERM, `Terminated`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

from tallybook.errors import Terminated

_SECONDS_BETWEEN = 0.2


@contextmanager
def interruptible(spark: SparkSession) -> Iterator[None]:
    """Make Ctrl-C cancel what Spark does in the block, then leave it with `KeyboardInterrupt`.

    Wrap everything that belongs to one run and look at the outcome outside: inside, a cancelled job looks like a
    failed one. What runs in Python, such as committing a table, is finished first; a second signal does not wait.
    SIGTERM does the same, if the program handles it, and raises `Terminated`. Only the main thread gets signals: a
    block in another thread is left like this if the main thread waits for it in a block of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        with _following_main_thread():
            yield
        return
    received: list[int] = []
    _blocks.append(received)
    left = threading.Event()

    def on_signal(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        if len(received) > 1:
            raise _error(signum)
        threading.Thread(target=_keep_cancelling, args=(spark, left), daemon=True).start()

    handled = [signal.SIGINT, *([signal.SIGTERM] if callable(signal.getsignal(signal.SIGTERM)) else [])]
    before = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield
    except Exception as error:
        if received:
            raise _error(received[0]) from error
        raise
    finally:
        left.set()
        _blocks.remove(received)
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise _error(received[0])


_blocks: list[list[int]] = []
"""The signals that each block of the main thread has received, the innermost block last."""


def was_interrupted() -> bool:
    """True if the block that the main thread is in has received a signal."""
    return bool(_blocks and _blocks[-1])


@contextmanager
def _following_main_thread() -> Iterator[None]:
    """Leaves the block with the error of the signal that the main thread has received."""
    received = _blocks[-1] if _blocks else []
    try:
        yield
    except Exception as error:
        if received:
            raise _error(received[0]) from error
        raise
    if received:
        raise _error(received[0])


def _error(signum: int) -> BaseException:
    return Terminated() if signum == signal.SIGTERM else KeyboardInterrupt()


def _keep_cancelling(spark: SparkSession, left: threading.Event) -> None:
    """Cancels until the block is left: the signal may come between two jobs."""
    while not left.is_set():
        with contextlib.suppress(Exception):
            spark.interruptAll()
        left.wait(_SECONDS_BETWEEN)
