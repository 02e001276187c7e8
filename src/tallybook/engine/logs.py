"""The log files of Spark sessions: readable by their owner only, with old ones removed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tallybook.model.settings import LogSettings
from tallybook.private import make_private_file, make_private_folder

_PREFIX = "tallybook-log-"


def new_log(folder: Path | None = None, keep: int = LogSettings().keep) -> Path:
    """Makes an empty log file in `folder`, by default in a temporary one, and removes the oldest beyond `keep`."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        _remove_oldest((log for log in folder.parent.glob(f"{_PREFIX}*/spark-*.log") if _is_ours(log)), keep - 1)
    else:
        make_private_folder(folder)
        _remove_oldest(folder.glob("spark-*.log"), keep - 1)
    return make_private_file(folder.resolve() / f"spark-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{os.getpid()}.log")


def _remove_oldest(logs: Iterable[Path], keep: int) -> None:
    """Removes all but the newest logs; their names sort by time. The log of a running process stays, and so does one
    that cannot be removed."""
    for log in sorted(logs, key=lambda log: log.name, reverse=True)[keep:]:
        if is_running_log(log):
            continue
        try:
            log.unlink()
            if log.parent.name.startswith(_PREFIX):
                log.parent.rmdir()
        except OSError:
            continue


def _is_ours(log: Path) -> bool:
    try:
        return log.stat().st_uid == os.getuid()
    except OSError:
        return False


def is_running_log(log: Path) -> bool:
    """True if the process that wrote the log may still run."""
    _, _, process = log.stem.rpartition("-")
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError, OverflowError):
        return True
    return True
