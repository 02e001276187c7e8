"""Identifies the process that executes a run, and tells whether it is alive.

On this host a process is identified by its pid and start time, so a later process with the same pid is not mistaken for
it. A process on another host is known by its heartbeat only.
"""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta
from pathlib import Path

from tallybook.model.run import Owner

HEARTBEAT_EVERY = timedelta(seconds=30)
DEAD_AFTER = timedelta(minutes=5)
"""The silence after which a process on another host counts as dead: ten missed beats."""

_STATE, _START_TICK = 0, 19
"""Fields of /proc/PID/stat, counted after the command name."""


def current_owner() -> Owner:
    """Returns the owner for this process."""
    pid = os.getpid()
    stat = _stat(pid)
    started = f"{_machine()}/{stat[_START_TICK]}" if stat else ""
    return Owner(host=socket.gethostname(), pid=pid, started=started)


def is_alive(owner: Owner, heartbeat_at: datetime, now: datetime) -> bool:
    """True if the process may still be working on its run."""
    machine, _, tick = owner.started.rpartition("/")
    if owner.host != socket.gethostname() or machine != _machine():
        return now - heartbeat_at < DEAD_AFTER
    if not _pid_exists(owner.pid):
        return False
    stat = _stat(owner.pid)
    return stat is None or (stat[_STATE] not in "ZX" and stat[_START_TICK] == tick)


def _machine() -> str:
    """Returns the boot id and the pid namespace, because containers can share a host name and not know each other's
    pids. Empty if the system has no such ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of /proc/PID/stat; None if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _pid_exists(pid: int) -> bool:
    """True if a process has the pid. Signal 0 only checks; PermissionError means that there is a process."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
