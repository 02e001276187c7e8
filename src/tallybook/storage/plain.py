"""Writing plain files: staged beside the target, then published in one step.

Each attempt stages in a folder of its own, for a driver may die before its Spark does.
A target with the extension of its format (`report.csv`) is one file; any other is a folder of files. File names in a
folder carry the run and the operation, so a retry of the same output replaces its own files and no others.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.storage.base import local_path
from tallybook.storage.files import exactly
from tallybook.storage.guard import UNGUARDED, Guard
from tallybook.storage.publish import alone, beside, link_into, publish, remove
from tallybook.storage.scan import read_options
from tallybook.storage.stage import Written, columns_text, stage

_EXTENSIONS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "orc": (".orc",),
}


def write_plain(
    spark: SparkSession,
    frame: DataFrame,
    location: Location,
    *,
    mode: str,
    run_id: str,
    seq: int,
    guard: Guard = UNGUARDED,
) -> Written:
    """Write the rows as files; `mode` is overwrite, append or error."""
    local = local_path(location)
    if local is None:
        raise fail(
            "WriteFailed",
            f"{location} cannot be written so that a reader never sees half of it: an object store has no step that "
            "replaces many files at once",
            hint="use a datasource of type delta there",
        )
    target = Path(local).resolve()
    prefix = f"{run_id}-{seq}-"
    try:
        with alone(target):
            _refuse(spark, frame, location, target, mode, prefix)
            return _write(spark, frame, location, target, mode, prefix, guard)
    except OSError as error:
        raise fail("WriteFailed", f"{location} could not be written: {error}") from error


def _write(
    spark: SparkSession, frame: DataFrame, location: Location, target: Path, mode: str, prefix: str, guard: Guard
) -> Written:
    staged = beside(target, prefix + uuid4().hex)
    single = _is_file(location, target)
    try:
        parts = stage(spark, frame, location, str(staged), single=single)
        files = _named(staged, prefix)
        if single:
            [file] = files
            guard.check()
            publish(file, target)
        else:
            if mode == "append" and target.exists():
                link_into(target, staged, prefix)
            guard.check()
            publish(staged, target)
    finally:
        remove(staged)
    return Written(sum(part.rows for part in parts), tuple(frame.columns))


def _named(staged: Path, prefix: str) -> list[Path]:
    """The staged files under names that say whose they are; Spark's marker and checksum files go."""
    if not staged.is_dir():
        raise OSError(f"Spark wrote to {staged}, which this process cannot see")
    files: list[Path] = []
    for path in sorted(staged.iterdir()):
        if path.name.startswith(("_", ".")):
            remove(path)
        else:
            name = f"{prefix}{len(files):05d}{''.join(path.suffixes)}"
            files.append(path.rename(path.with_name(name)))
    return files


def _is_file(location: Location, target: Path) -> bool:
    return target.suffix.lower() in _EXTENSIONS[location.source.type]


def _refuse(spark: SparkSession, frame: DataFrame, location: Location, target: Path, mode: str, prefix: str) -> None:
    """Say no before anything is computed."""
    single = _is_file(location, target)
    if mode == "append" and single:
        raise fail("WriteFailed", f"rows cannot be added to the single file {target}", hint="name a folder instead")
    if target.is_file() and not single:
        raise fail("WriteFailed", f"{target} is a file, and the output would be a folder")
    others = [] if single and target.is_file() else _visible(target)
    foreign = next((entry for entry in others if not _is_data(entry, location)), None)
    if foreign is not None:
        message = f"{target} holds '{foreign.name}', which is no {location.source.type} data of an output"
        raise fail("WriteFailed", message, hint="an output needs a folder of its own")
    others = [entry for entry in others if not entry.name.startswith(prefix)]
    if mode == "error" and (others or target.is_file()):
        raise fail("WriteFailed", f"{target} is already there", hint="the output's mode is error")
    if mode == "append" and others:
        _refuse_other_columns(spark, frame, location, target)


def _visible(folder: Path) -> list[Path]:
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [entry for entry in entries if not entry.name.startswith(".") and entry.name != "_SUCCESS"]


def _is_data(entry: Path, location: Location) -> bool:
    """A file of the format, maybe compressed, or a folder for one value of a column."""
    endings = _EXTENSIONS[location.source.type]
    return "=" in entry.name if entry.is_dir() else any(suffix.lower() in endings for suffix in entry.suffixes)


def _refuse_other_columns(spark: SparkSession, frame: DataFrame, location: Location, target: Path) -> None:
    """Rows with other columns beside the old ones would make the whole folder unreadable. JSON names its own."""
    if location.source.type == "json":
        return
    reader = spark.read.format(location.source.type).options(**read_options(location))
    there, here = reader.load(exactly(str(target))).schema, frame.schema
    if location.source.type == "csv":
        same = there.names == here.names if read_options(location)["header"] else len(there) == len(here)
    else:
        same = {f.name: f.dataType for f in there.fields} == {f.name: f.dataType for f in here.fields}
    if not same:
        raise fail(
            "WriteFailed",
            f"{target} has the columns {columns_text(there)}; the output has {columns_text(here)}",
            hint="append needs the same columns; mode overwrite replaces them",
        )
