"""Files that a job could not read, in plain words: damaged, foreign, or removed while a run was reading them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from tallybook.errors import Problem
from tallybook.model.location import Location
from tallybook.storage.failure import causes, error_condition
from tallybook.storage.files import path_of
from tallybook.storage.formats import FORMATS, format_of
from tallybook.storage.formats.signature import Signature, damaged
from tallybook.storage.scan import local_path

_OLD_DATES = "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\.\s")


def failed_read(error: Exception, locations: Iterable[Location]) -> tuple[Problem, str] | None:
    """The problem of a job that failed because of a file it was reading, and that file; None for other failures.

    Spark names the file, unless it comes upon the damage late. Then the local files that the job was reading are tried
    one after the other with another reader.
    """
    chain = causes(error)
    messages = [str(error), *(cause.message for cause in chain)]
    named = next((found for message in messages if (found := _FILE.match(f"{message} "))), None)
    if named is None:
        bad = next(_damaged_files(locations), None)
        return bad and (damaged(*bad), bad[1])
    path = path_of(re.sub("^file:/+", "file:/", named[2]))
    conditions = [error_condition(error), *(cause.condition for cause in chain)]
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
    signatures = (format.signature for format in FORMATS.values() if format.signature)
    return damaged(next((each for each in signatures if path.endswith(each.suffix)), None), path)


def _damaged_files(locations: Iterable[Location]) -> Iterator[tuple[Signature, str]]:
    """The local columnar files that PyArrow cannot read to the end, with the signature of their format."""
    for location in locations:
        local, signature = local_path(location), format_of(location).signature
        if local is None or signature is None:
            continue
        path = Path(local)
        for file in sorted(path.rglob(f"*{signature.suffix}")) if path.is_dir() else [path]:
            if "_delta_log" in file.parts or not file.is_file():
                continue
            try:
                signature.read(file)
            except (pa.ArrowException, OSError):
                yield signature, str(file)
