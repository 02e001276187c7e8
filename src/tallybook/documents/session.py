"""The documents of `tallybook session`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.documents.base import Document

if TYPE_CHECKING:
    from tallybook.engine.warm import Running, WarmSession


class WarmSessionState(Document):
    """A warm session that runs."""

    pid: int
    """The process of the session."""
    since: datetime
    """When it was started."""
    idle_minutes: int
    """After so many minutes without use it ends."""
    in_use: bool
    """True if a command uses it now."""
    fits: bool
    """True if commands in this workspace use it: it was started with the same settings, Java and Spark."""
    master: str
    """Its Spark master."""
    java: str
    """The version of its Java."""
    spark: str
    """The version of its Spark."""
    log: Path
    """The file with Spark's log."""

    @classmethod
    def of(cls, session: WarmSession, running: Running, fits: bool = True) -> WarmSessionState:
        return cls(
            pid=running.pid,
            since=datetime.fromisoformat(running.since),
            idle_minutes=running.idle_minutes,
            in_use=session.is_in_use(),
            fits=fits,
            master=running.master,
            java=running.java,
            spark=running.spark,
            log=session.log,
        )


class WarmSessions(Document):
    """The warm sessions of the user on this machine."""

    sessions: tuple[WarmSessionState, ...]
    """Those that run, of any settings."""

    @property
    def fitting(self) -> WarmSessionState | None:
        """The one that commands in this workspace use."""
        return next((session for session in self.sessions if session.fits), None)


class StoppedSessions(Document):
    """The warm sessions that were stopped."""

    stopped: tuple[int, ...]
    """Their processes."""

    @classmethod
    def of(cls, sessions: Iterable[Running | None]) -> StoppedSessions:
        return cls(stopped=tuple(session.pid for session in sessions if session is not None))
