"""The heartbeat of a run, which tells other hosts that its process is alive."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from tallybook.errors import StoreError
from tallybook.model.run import Run
from tallybook.store.active import ActiveRuns
from tallybook.store.owner import HEARTBEAT_EVERY

_log = logging.getLogger(__name__)


@contextmanager
def beating(store: ActiveRuns, run: Run, every: timedelta = HEARTBEAT_EVERY) -> Iterator[None]:
    """Records heartbeats of the run until the block ends. A failed heartbeat is only logged: the store may be
    unreachable for a moment."""
    done = Event()

    def beat() -> None:
        while not done.wait(every.total_seconds()):
            try:
                store.heartbeat(run)
            except StoreError as error:
                _log.warning("no heartbeat for run %s: %s", run.id, error.message)

    thread = Thread(target=beat, name=f"heartbeat-{run.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
