"""Recognises the files and folders that outputs have written: their names contain the run and the operation.

Run ids are version 7 UUIDs, so no file of a user has such a name by chance. All other entries are foreign.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tallybook.errors import RunError, fail

_RUN = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
OUTPUT_NAME = rf"{_RUN}-[1-9][0-9]*"
"""A run and an operation of it, as `output_name` writes them."""
_OUTPUT = re.compile(OUTPUT_NAME)
_CODECS = "snappy|gz|bz2|deflate|zlib|zstd|zst|lz4|lz4raw|lzo|br|brotli|xz"
_ENDING = rf"(\.({_CODECS}))?\.(parquet|orc)|\.(csv|json)(\.({_CODECS}))?"
_FILE = re.compile(rf"{OUTPUT_NAME}-[0-9]{{5,}}({_ENDING})")
_LISTED = 20


def output_name(run_id: str, seq: int) -> str:
    """Returns the beginning of the names of an output's files and folders."""
    return f"{run_id}-{seq}"


def is_own_file(entry: Path) -> bool:
    """True if the entry is a data file that an output of any run has written."""
    return _FILE.fullmatch(entry.name) is not None and entry.is_file() and not entry.is_symlink()


def is_own_folder(entry: Path) -> bool:
    """True if the entry is a folder in which an output of any run has staged the files of a Delta table."""
    return _OUTPUT.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def foreign_files(folder: Path) -> list[Path]:
    """Returns the entries of a folder, also hidden ones, that no output of plain files has written."""
    return [entry for entry in _entries(folder) if not is_own_file(entry)]


def foreign_to_delta(folder: Path) -> list[Path]:
    """Returns the entries of a folder without a table that no output of a Delta table has written."""
    return [entry for entry in _entries(folder) if entry.name != "_delta_log" and not is_own_folder(entry)]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def in_the_way(folder: Path, entries: Sequence[Path]) -> RunError:
    """Returns the error for a folder with entries that no output has written."""
    shown = [f"'{entry.name}{'/' if entry.is_dir() and not entry.is_symlink() else ''}'" for entry in entries[:_LISTED]]
    more = f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else ""
    return fail(
        "WriteFailed",
        f"the folder {folder} contains {', '.join(shown)}{more}, which this product did not write",
        hint="an output replaces only its own files: write to another folder, or move these entries elsewhere",
    )
