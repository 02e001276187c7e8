"""Files that cannot be read, in plain words: damaged, foreign, or gone while a run was reading them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq

from tallybook.errors import Problem, RunError, fail
from tallybook.model.location import Location
from tallybook.storage.base import local_path
from tallybook.storage.failure import causes
from tallybook.storage.files import condition, plain

_MAGIC = {"parquet": b"PAR1", "orc": b"ORC"}
_NAMES = {"parquet": "Parquet", "orc": "ORC", "csv": "CSV", "json": "JSON"}
_COMPRESSED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
_ENCRYPTED = b"PARE"
_ENDS = 64
_HINT = "replace the file with a good copy, or remove it"
_READING, _OLD_DATES = "FAILED_READ_FILE", "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\.\s")


def unreadable(format: str, path: str) -> RunError:
    """The error for a file whose footer cannot be read."""
    return fail("DataLoadError", f"{path} is not a readable {_NAMES[format]} file: {_fault(format, path)}", hint=_HINT)


def check_compression(files: Iterable[str]) -> None:
    """Raises DataLoadError for a local file that is not compressed as its name says.

    Spark may find no rows in it instead of failing.
    """
    for file in files:
        path = Path(plain(file))
        magic = _COMPRESSED.get(path.suffix)
        if magic is None or not file.startswith("file:") or not path.is_file():
            continue
        with path.open("rb") as opened:
            first = opened.read(len(magic))
        if first and first != magic:
            message = f"{path} is not compressed in the way its name says ({path.suffix})"
            raise fail("DataLoadError", message, hint="rename the file, or replace it with a good copy")


def failed_read(error: Exception, places: Iterable[Location]) -> tuple[Problem, str] | None:
    """The problem of a job that failed because of a file it was reading, and that file; None for other failures.

    Spark names the file, unless it comes upon the damage late. Then the local files that the job was reading are tried
    one after the other with another reader.
    """
    chain = causes(error)
    messages = [str(error), *(cause.message for cause in chain)]
    named = next((found for message in messages if (found := _FILE.match(f"{message} "))), None)
    if named is None:
        damaged = next(_damaged_files(places), None)
        return damaged and (_damaged(*damaged), damaged[1])
    path = plain(re.sub("^file:/+", "file:/", named[2]))
    conditions = [condition(error), *(cause.condition for cause in chain)]
    return _named_problem(named[1], path, _OLD_DATES in conditions), path


def _named_problem(kind: str, path: str, old_dates: bool) -> Problem:
    if old_dates:
        message = f"{path} has dates before 1582-10-15 or timestamps before 1900, and does not say in which calendar"
        return Problem("DataLoadError", message, "copy the file to this machine, or write it anew with Spark")
    if kind == "FILE_NOT_EXIST":
        return Problem("DataLoadError", f"{path} was removed while the run was reading it", "run again")
    if kind == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
        message = f"{path} has a column of another type than its table"
        return Problem("DataLoadError", message, "write the file anew with the types of the table")
    format = next((name for name in _MAGIC if path.endswith(f".{name}")), None)
    return _damaged(format, path)


def _damaged(format: str | None, path: str) -> Problem:
    reason = _fault(format, path) if format and Path(path).is_file() else ""
    known = "" if reason in ("", _BAD_FOOTER) else f": {reason}"
    return Problem("DataLoadError", f"{path} is damaged and cannot be read{known}", _HINT)


_BAD_FOOTER = "its footer is damaged"


def _fault(format: str, path: str) -> str:
    """What the first and last bytes of a file say about it."""
    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            first = file.read(_ENDS)
            file.seek(max(0, size - _ENDS))
            last = file.read()
    except OSError as error:
        return error.strerror or "it cannot be opened"
    if not size:
        return "it is empty"
    if format == "parquet" and (first.startswith(_ENCRYPTED) or last.endswith(_ENCRYPTED)):
        return "it is encrypted"
    magic = _MAGIC[format]
    if not first.startswith(magic):
        return "it contains text" if _is_text(first) else "it is a file of another kind"
    if not (last.endswith(magic) if format == "parquet" else magic in last):
        return "its end is missing, so it was written or copied only in part"
    return _BAD_FOOTER


def _is_text(first: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in first)


def _damaged_files(places: Iterable[Location]) -> Iterator[tuple[str, str]]:
    """The local columnar files that PyArrow cannot read to the end, with their format."""
    try_file: dict[str, Callable[[Path], object]] = {"parquet": _read_parquet, "orc": _read_orc, "delta": _read_parquet}
    for place in places:
        local = local_path(place)
        read = try_file.get(place.source.type)
        if local is None or read is None:
            continue
        path = Path(local)
        format = "orc" if place.source.type == "orc" else "parquet"
        for file in sorted(path.rglob(f"*.{format}")) if path.is_dir() else [path]:
            if "_delta_log" in file.parts or not file.is_file():
                continue
            try:
                read(file)
            except (pa.ArrowException, OSError):
                yield format, str(file)


def _read_parquet(file: Path) -> None:
    for _ in pq.ParquetFile(file).iter_batches():
        pass


def _read_orc(file: Path) -> None:
    opened = orc.ORCFile(file)
    for stripe in range(opened.nstripes):
        opened.read_stripe(stripe)
