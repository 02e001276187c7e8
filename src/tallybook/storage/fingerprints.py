"""Recognises a file that has changed, also if somebody has given it its old time again.

A small file is recognised by a hash of its content, so a new time alone is no change. Of a larger file only the end is
hashed, where Parquet and ORC describe their content, and its size, time and inode count as well. The state of a file
says what was hashed.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

from tallybook.model.state import Json

SMALL = 2**20
"""The size up to which the whole content of a file is hashed."""
_END = 2**16


def file_state(file: Path) -> Json | None:
    """Returns what a file is recognised by; None if it was removed after it was listed."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            is_small = status.st_size <= SMALL
            opened.seek(0 if is_small else status.st_size - _END)
            digest = hashlib.sha256(opened.read()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError:  # the reader of the file reports it
        status, is_small, digest = file.stat(), False, None
    return {
        "file": str(file),
        "size": status.st_size,
        "modified": time_text(status.st_mtime),
        "inode": status.st_ino,
        "hashed": "content" if is_small else "end",
        "sha256": digest,
    }


def is_same(old: Json, new: Json) -> bool:
    """True if a file or table has not changed between two states. States of earlier versions, of files that only Spark
    can read, and of tables of databases have no hash: all that both states say is compared."""
    keys = [key for key in old if key in new]
    if "sha256" in old and "sha256" in new:
        by_content = old["hashed"] == new["hashed"] == "content"
        keys = ["size", "sha256"] if by_content else ["size", "modified", "inode", "hashed", "sha256"]
    return all(old.get(key) == new.get(key) for key in keys)


def time_text(seconds: float) -> str:
    """Returns the time of a file as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
