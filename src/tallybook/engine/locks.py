"""Locks between processes of one user. A lock ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_SECONDS_BETWEEN = 0.05


def lock(file: Path, *, shared: bool = False, seconds: float = 0) -> IO[bytes] | None:
    """Returns the opened and locked file; None if others keep it locked for so long. Closing it ends the lock."""
    opened = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    last = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= last:
                opened.close()
                return None
            time.sleep(_SECONDS_BETWEEN)
        else:
            return opened


@contextmanager
def locked(file: Path, *, shared: bool = False, seconds: float = 0) -> Iterator[bool]:
    """Locks a file during the block. Yields False if others keep it locked."""
    opened = lock(file, shared=shared, seconds=seconds)
    try:
        yield opened is not None
    finally:
        if opened is not None:
            opened.close()
