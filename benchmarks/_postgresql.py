"""Starts a PostgreSQL server for a benchmark, on a socket in a temporary folder, and ends it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to be run by root; then its processes belong to this user."""


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Yields the url of a server. `TALLYBOOK_BENCH_POSTGRESQL` names another one."""
    if given := os.environ.get("TALLYBOOK_BENCH_POSTGRESQL"):
        yield given
        return
    with warnings.catch_warnings(action="ignore"):
        from pgserver import _commands as commands

    user: dict[str, Any] = {"user": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if user:
        shutil.chown(folder, UNPRIVILEGED)
    data = folder / "data"
    commands.initdb(["--auth=trust", "--encoding=utf8", "-U", "postgres"], pgdata=data, cwd=folder, **user)
    options = f'-h "" -k {folder} -c shared_buffers=256MB -c max_wal_size=4GB'
    commands.pg_ctl(["-w", "-o", options, "-l", str(folder / "log"), "start"], pgdata=data, cwd=folder, **user)
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        commands.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=data, cwd=folder, **user)
        shutil.rmtree(folder, ignore_errors=True)
