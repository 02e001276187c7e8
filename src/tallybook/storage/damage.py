"""Explains why a job could not read a file: it is damaged, of another format, or was removed during the run."""

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
    """Returns the problem of a job that failed because of a file, and the file; None for other failures.

    Spark names the file unless it notices the damage late. Then PyArrow reads the local files of the job one after the
    other.
    """
    chain = causes(error)
    messages = [str(error), *(cause.message for cause in chain)]
    named = next((match for message in messages if (match := _FILE.match(f"{message} "))), None)
    if named is None:
        bad = next(_damaged_files(locations), None)
        return bad and (damaged(*bad), bad[1])
    path = path_of(re.sub("^file:/+", "file:/", named[2]))
    conditions = [error_condition(error), *(cause.condition for cause in chain)]
    return _named_problem(named[1], path, _OLD_DATES in conditions), path


def _named_problem(kind: str, path: str, old_dates: bool) -> Problem:
    if old_dates:
        message = f"{path} has dates before 1582-10-15 or timestamps before 1900, and its calendar is not known"
        return Problem("DataLoadError", message, "copy the file to this machine, or write it again with Spark")
    if kind == "FILE_NOT_EXIST":
        return Problem("DataLoadError", f"{path} was removed while the run was reading it", "run again")
    if kind == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
        message = f"a column of {path} has another type than in its table"
        return Problem("DataLoadError", message, "write the file again with the types of the table")
    signatures = (format.signature for format in FORMATS.values() if format.signature)
    return damaged(next((signature for signature in signatures if path.endswith(signature.suffix)), None), path)


def _damaged_files(locations: Iterable[Location]) -> Iterator[tuple[Signature, str]]:
    """Returns the local columnar files that PyArrow cannot read to the end, with the signature of their format."""
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
