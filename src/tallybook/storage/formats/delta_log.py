"""Finds damage in the log of a local Delta table.

delta-rs reports a damaged entry with a stack trace, and reads an entry without its last lines as one with fewer files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

ADDED_ROWS = "tallybook.rows"
"""The key in `commitInfo` with the number of rows that a commit of Tallybook adds."""


def log_fault(root: str, version: int | None = None) -> str | None:
    """Describes the first damaged entry that a version of the table needs; None if all are intact.

    Without a version, all entries are checked.
    """
    folder = Path(root, "_delta_log")
    if not folder.is_dir():
        return f"{folder} is not a folder" if folder.exists() else None
    numbered = [(int(file.name[:20]), file) for file in sorted(folder.iterdir()) if file.name[:20].isdigit()]
    wanted = [(number, file) for number, file in numbered if version is None or number <= version]
    snapshots = [number for number, file in wanted if ".checkpoint" in file.name]
    start = max(snapshots, default=-1) if version is not None else -1
    for number, file in wanted:
        if ".checkpoint" in file.name and number >= start:
            fault = _snapshot_fault(file)
        elif file.name[20:] == ".json" and number > start:
            fault = _entry_fault(file)
        else:
            fault = None
        if fault:
            return f"{file} {fault}"
    return None


def _snapshot_fault(file: Path) -> str | None:
    if file.suffix != ".parquet":
        return None
    try:
        pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return "is damaged"
    return None


def _entry_fault(file: Path) -> str | None:
    try:
        actions = [json.loads(line) for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError:
        return "is cut off or damaged"
    if not actions:
        return "is empty"
    if not all(isinstance(action, dict) for action in actions):
        return "is damaged"
    added = [action["add"] for action in actions if isinstance(action.get("add"), dict)]
    for action in actions:
        if isinstance(action.get("commitInfo"), dict) and not _is_complete(action["commitInfo"], added):
            return "is cut off: files are missing in it"
    return None


def _is_complete(info: dict[str, Any], added: list[dict[str, Any]]) -> bool:
    """False if an entry lists fewer files, or files with fewer rows, than its `commitInfo` states.

    Only Tallybook and delta-rs state it reliably.
    """
    metrics = info.get("operationMetrics")
    files = metrics.get("num_added_files") if isinstance(metrics, dict) else None
    if isinstance(files, int) and files > len(added):
        return False
    rows = info.get(ADDED_ROWS)
    return not isinstance(rows, int) or rows == sum(
        json.loads(add.get("stats") or "{}").get("numRecords", 0) for add in added
    )
