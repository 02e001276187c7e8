"""Writes plain files: staged next to the target, then published in one step.

Each attempt stages in a folder of its own, because a driver may die before its Spark does.
A target with the extension of its format (`report.csv`) is one file; any other is a folder of files. File names in a
folder carry the run and the operation: a retry of the same output replaces its own files and no others, and a folder
with files of any other name is not replaced at all.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import fail
from tallybook.model.datasource import names_one_file
from tallybook.model.location import Location
from tallybook.storage.base import local_path
from tallybook.storage.files import exactly
from tallybook.storage.guard import UNGUARDED, Guard
from tallybook.storage.ownership import foreign_files, in_the_way, output_name
from tallybook.storage.publish import clear, link_into, locked, publish, remove, sibling
from tallybook.storage.read import read_options
from tallybook.storage.stage import Written, columns_text, stage


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
    output, target = output_name(run_id, seq), _target(location)
    try:
        with locked(target):
            refuse_files(location, mode, output)
            if mode == "append":
                _refuse_other_columns(spark, frame, location, target, f"{output}-")
            return _write(spark, frame, location, target, mode, output, guard)
    except ConnectionError:  # to the JVM, which is gone; the place may be as good as ever
        raise
    except OSError as error:
        raise fail("WriteFailed", f"{location} could not be written: {error}") from error


def _write(
    spark: SparkSession, frame: DataFrame, location: Location, target: Path, mode: str, output: str, guard: Guard
) -> Written:
    staged, prefix = sibling(target, f"{output}-{uuid4().hex}"), f"{output}-"
    single = _is_file(location, target)
    try:
        parts = stage(spark, frame, location, str(staged), single=single)
        files = _named(staged, prefix)
        if mode == "append" and target.exists():
            _refuse_rivals(target, guard)
            link_into(target, staged, prefix)
        refuse_files(location, mode, output)
        guard.check()
        publish(files[0] if single else staged, target)
    finally:
        clear(staged)
    return Written(sum(part.rows for part in parts), tuple(frame.columns))


def _refuse_rivals(target: Path, guard: Guard) -> None:
    for rival in guard.rivals:
        if any(file.name.startswith(f"{rival}-") for file in target.iterdir()):
            guard.refuse_rival(rival, str(target))


def _target(location: Location) -> Path:
    local = local_path(location)
    if local is None:
        raise fail(
            "WriteFailed",
            f"{location} cannot be written so that a reader never sees half of it: an object store has no step that "
            "replaces many files at once",
            hint="use a datasource of type delta there",
        )
    return Path(local).resolve()


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
    return names_one_file(location.source.type, target.name)


def refuse_files(location: Location, mode: str, output: str) -> None:
    """WriteFailed unless the output may have the place as it is now. Needs no rows and changes nothing."""
    target = _target(location)
    single = _is_file(location, target)
    if mode == "append" and single:
        raise fail("WriteFailed", f"rows cannot be added to the single file {target}", hint="name a folder instead")
    if target.exists() and not (target.is_file() if single else target.is_dir()):
        found = "a folder" if target.is_dir() else "a file" if target.is_file() else "a special file"
        raise fail(
            "WriteFailed",
            f"{target} is {found}, and the output would be {'a file' if single else 'a folder'}",
            hint="an output with the extension of its format is one file, any other is a folder; name another place",
        )
    if foreign := foreign_files(target):
        raise in_the_way(target, foreign)
    others = _others(target, f"{output}-")
    if mode == "error" and (others or target.is_file()):
        raise fail("WriteFailed", f"{target} is already there", hint="the output's mode is error")


def _is_of_format(file: Path, format: str) -> bool:
    """True if a data file is of the format, compressed or not: `x.csv.gz`, `x.snappy.parquet`."""
    return any(names_one_file(format, f"x{suffix}") for suffix in file.suffixes)


def _others(folder: Path, prefix: str) -> list[Path]:
    """The files in a folder that are not of the output itself."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [entry for entry in entries if not entry.name.startswith(prefix)]


def _refuse_other_columns(spark: SparkSession, frame: DataFrame, location: Location, target: Path, prefix: str) -> None:
    """Rows in another format or with other columns would make the whole folder unreadable. JSON names its columns."""
    others = _others(target, prefix)
    strange = [entry.name for entry in others if not _is_of_format(entry, location.source.type)]
    if strange:
        raise fail(
            "WriteFailed",
            f"rows cannot be added to {target} as {location.source.type}: it contains '{strange[0]}'",
            hint="write to another folder, or in the format of its files",
        )
    if location.source.type == "json" or not others:
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
