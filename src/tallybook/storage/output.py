"""An output of a run: its name, its mode, the run's right to write it, and the files and folders that it has written.

The names of these files and folders contain the run and the operation. Run ids are version 7 UUIDs, so no file of a
user has such a name by chance. All other entries of a folder are foreign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from tallybook.errors import RunError, fail
from tallybook.model.replaced_periods import ReplacedPeriods
from tallybook.storage.partitions import files_in_partitions

WriteMode = Literal["overwrite", "append", "error", "replace_period"]
RUN_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
OUTPUT_NAME = rf"{RUN_ID}-[1-9][0-9]*"
"""A run and an operation of it, as `output_name` writes them."""
_OUTPUT = re.compile(OUTPUT_NAME)
_CODECS = "snappy|gz|bz2|deflate|zlib|zstd|zst|lz4|lz4raw|lzo|br|brotli|xz"
_ENDING = rf"(\.({_CODECS}))?\.(parquet|orc)|\.(csv|json)(\.({_CODECS}))?|\.xlsx"
_FILE = re.compile(rf"{OUTPUT_NAME}-[0-9]{{5,}}({_ENDING})")
_LISTED = 20


@dataclass(frozen=True)
class Guard:
    """A run's right to write one output. Writers call `check` as the last step before they publish."""

    check: Callable[[], None]
    """Raises a problem if the run was declared dead, or its period or project no longer lets it write."""
    output: str
    """A name that all runs of the same project, period and output share, in every workspace and store."""
    claim: int
    """A number that grows with every run and retry. Rows of an earlier claim never replace those of a later one."""
    rivals: tuple[str, ...] = ()
    """Runs that began to append the same rows and may still be alive. If one has written, nothing is appended."""

    def refuse_rival(self, rival: str, target: str) -> NoReturn:
        """Raises AlreadyAppended, because a rival has appended its rows."""
        raise fail(
            "AlreadyAppended",
            f"run {rival}, which was declared dead, has appended to {target} after this run began",
            hint=f"`tallybook runs {rival}` shows it; start a new run, or use --again to append once more",
        )


def _allow() -> None:
    pass


UNGUARDED = Guard(_allow, "", 0)
"""For writes that belong to no recorded run."""


@dataclass(frozen=True)
class Output:
    """An output of a run. Writing it again replaces what it wrote before."""

    run_id: str
    seq: int
    """The operation that writes it."""
    mode: WriteMode = "overwrite"
    guard: Guard = UNGUARDED
    """Checked directly before the rows become visible."""
    periods: ReplacedPeriods | None = None
    """The periods whose rows it replaces, with `mode: replace_period`; None with every other mode."""
    partition_by: tuple[str, ...] = ()
    """The columns by whose values its rows are divided among folders."""
    ordered: bool = False
    """True if the rows are in one partition and in the order in which readers must find them."""

    @property
    def name(self) -> str:
        """The beginning of the names of its files and folders."""
        return output_name(self.run_id, self.seq)


def output_name(run_id: str, seq: int) -> str:
    """Returns the beginning of the names of an output's files and folders."""
    return f"{run_id}-{seq}"


def is_own_file(entry: Path) -> bool:
    """True if the entry is a data file that an output of any run has written."""
    return _FILE.fullmatch(entry.name) is not None and entry.is_file() and not entry.is_symlink()


def is_own_folder(entry: Path) -> bool:
    """True if the entry is a folder in which an output of any run has staged the files of a Delta table."""
    return _OUTPUT.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def run_of_folder(folder: Path) -> str:
    """Returns the run in the name of a folder of `is_own_folder`."""
    return folder.name.rpartition("-")[0]


def foreign_files(folder: Path) -> list[Path]:
    """Returns the entries of a folder, also hidden ones, that no output of plain files has written."""
    return [entry for entry in files_in_partitions(folder) if not is_own_file(entry)]


def foreign_to_delta(folder: Path) -> list[Path]:
    """Returns the entries of a folder without a table that no output of a Delta table has written."""
    return [entry for entry in _entries(folder) if entry.name != "_delta_log" and not is_own_folder(entry)]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def other_partitions(target: str, existing: Sequence[str], partition_by: Sequence[str]) -> RunError:
    """Returns the error for an output to a table or folder whose rows are divided by other columns."""
    divided = f"is partitioned by {', '.join(existing)}" if existing else "is not partitioned"
    wanted = f"`partition_by: [{', '.join(partition_by)}]`" if partition_by else "no `partition_by`"
    return fail(
        "WriteFailed",
        f"{target} {divided}, but the output has {wanted}",
        hint=f"write `partition_by: [{', '.join(existing)}]`, or write to another location"
        if existing
        else "remove `partition_by`, or write to another location",
    )


def in_the_way(folder: Path, entries: Sequence[Path]) -> RunError:
    """Returns the error for a folder with entries that no output has written."""
    names = [(str(entry.relative_to(folder)), entry.is_dir() and not entry.is_symlink()) for entry in entries[:_LISTED]]
    shown = [f"'{name}{'/' if is_folder else ''}'" for name, is_folder in names]
    more = f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else ""
    return fail(
        "WriteFailed",
        f"the folder {folder} contains {', '.join(shown)}{more}, which this product did not write",
        hint="an output replaces only its own files: write to another folder, or move these entries elsewhere",
    )
