"""Which process executes a run, and whether it still does.

On its own host a process is known by its pid and the moment it started, so a later process that was given the same pid
is not mistaken for it. Of a process on another host only its heartbeat can be seen.
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
    """This process."""
    pid = os.getpid()
    stat = _stat(pid)
    started = f"{_machine()}/{stat[_START_TICK]}" if stat else ""
    return Owner(host=socket.gethostname(), pid=pid, started=started)


def is_alive(owner: Owner, heartbeat_at: datetime, now: datetime) -> bool:
    """Whether the process can still be working on its run."""
    machine, _, tick = owner.started.rpartition("/")
    if owner.host != socket.gethostname() or machine != _machine():
        return now - heartbeat_at < DEAD_AFTER
    if not _pid_exists(owner.pid):
        return False
    stat = _stat(owner.pid)
    return stat is None or (stat[_STATE] not in "ZX" and stat[_START_TICK] == tick)


def _machine() -> str:
    """The boot and the pid namespace: containers that share a host name must not look up each other's pids.
    Empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """What Linux says of a process; None where it may not be asked."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _pid_exists(pid: int) -> bool:
    """Signal 0 only asks; being refused for lack of rights means there is someone."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
