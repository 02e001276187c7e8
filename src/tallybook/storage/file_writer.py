"""Writes plain files: stages them next to the target, then publishes them in one step.

Each attempt stages in its own folder, because Spark may still be writing after its driver has died. A target with the
extension of its format (`report.csv`) is one file; any other target is a folder of files. File names in a folder
contain the run and the operation. So a retry of an output replaces only the files of that output, and a folder with
files of any other name is not replaced at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.storage.failure import could_not_write
from tallybook.storage.output import Guard, Output, foreign_files, in_the_way, other_partitions
from tallybook.storage.partitions import NULL_FOLDER, column_of, files_in_partitions
from tallybook.storage.publish import clear, link_into, locked, publish, remove, sibling
from tallybook.storage.stage import Written, columns_text, stage

if TYPE_CHECKING:
    from tallybook.storage.formats.plain_files import PlainFiles

_COUNTER = re.compile(r"\.c\d+")
"""Spark counts the files of a task in their names if they are in partitions."""


def write_files(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, output: Output
) -> Written:
    """Writes the rows as files of a format."""
    target = _target(location)
    try:
        with locked(target):
            check_files(location, output)
            if output.mode == "append":
                _refuse_other_columns(format, spark, frame, location, target, output)
            return _write(format, spark, frame, location, target, output)
    except ConnectionError:  # the JVM has ended; nothing is wrong with the destination
        raise
    except OSError as error:
        raise could_not_write(location, error) from error


def _write(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, target: Path, output: Output
) -> Written:
    staged, prefix = sibling(target, f"{output.name}-{uuid4().hex}"), f"{output.name}-"
    single = location.source.is_one_file(target.name)
    try:
        written = stage(
            format,
            spark,
            frame,
            location,
            str(staged),
            single=single,
            ordered=output.ordered,
            partition_by=output.partition_by,
        )
        if output.partition_by and not written:
            _stage_types(format, spark, frame, location, staged, output.partition_by)
        files = _named(staged, prefix)
        for file in files:
            format.finish_file(file, location)
        if output.mode == "append" and target.exists():
            _refuse_rivals(target, output.guard)
            link_into(target, staged, prefix)
        check_files(location, output)
        output.guard.check()
        publish(files[0] if single else staged, target)
    finally:
        clear(staged)
    return Written(sum(file.rows for file in written), tuple(frame.columns))


def _refuse_rivals(target: Path, guard: Guard) -> None:
    for rival in guard.rivals:
        if any(file.name.startswith(f"{rival}-") for file in files_in_partitions(target)):
            guard.refuse_rival(rival, str(target))


def _target(location: Location) -> Path:
    local = location.local_path
    if local is None:
        raise fail(
            "WriteFailed",
            f"{location} cannot be written in one step: an object store cannot replace many files at once, so readers "
            "could see half of the output",
            hint="write to a datasource of type delta",
        )
    return Path(local).resolve()


def _stage_types(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, staged: Path, columns: Sequence[str]
) -> None:
    """Stages a file without rows, so that an empty output has columns and types: Spark writes no file into partitions
    that have no rows."""
    folder = staged.joinpath(*(f"{column}={NULL_FOLDER}" for column in columns))
    clear(staged)
    folder.parent.mkdir(parents=True)
    stage(format, spark, frame.drop(*columns).limit(0), location, str(folder))


def _named(staged: Path, prefix: str) -> list[Path]:
    """Renames the staged files after their output and removes Spark's marker and checksum files."""
    if not staged.is_dir():
        raise OSError(f"Spark wrote to {staged}, which does not exist on this machine")
    files: list[Path] = []
    for path in files_in_partitions(staged):
        if path.name.startswith(("_", ".")):
            remove(path)
        else:
            ending = "".join(suffix for suffix in path.suffixes if not _COUNTER.fullmatch(suffix))
            name = f"{prefix}{len(files):05d}{ending}"
            files.append(path.rename(path.with_name(name)))
    return files


def check_files(location: Location, output: Output) -> None:
    """Raises WriteFailed if the output may not replace what is at its location. It needs no rows and changes
    nothing."""
    target = _target(location)
    single = location.source.is_one_file(target.name)
    if output.mode == "append" and single:
        raise fail("WriteFailed", f"rows cannot be added to the single file {target}", hint="write to a folder instead")
    if target.exists() and not (target.is_file() if single else target.is_dir()):
        present = "a folder" if target.is_dir() else "a file" if target.is_file() else "a special file"
        raise fail(
            "WriteFailed",
            f"{target} is {present}, and the output would be {'a file' if single else 'a folder'}",
            hint="an output with the extension of its format is one file, any other is a folder; use another path",
        )
    if foreign := foreign_files(target):
        raise in_the_way(target, foreign)
    others = _others(target, f"{output.name}-")
    if output.mode == "append":
        _refuse_other_folders(target, others, output.partition_by)
    if output.mode == "error" and (others or target.is_file()):
        raise fail(
            "WriteFailed",
            f"{target} already exists",
            hint="the output has `mode: error`; use `overwrite` or `append` to write it anyway",
        )


def _has_format(file: Path, location: Location) -> bool:
    """True if a data file is of the location's format, compressed or not: `x.csv.gz`, `x.snappy.parquet`."""
    return any(location.source.is_one_file(f"x{suffix}") for suffix in file.suffixes)


def _others(folder: Path, prefix: str) -> list[Path]:
    """Returns the files in a folder that the output itself did not write."""
    return [entry for entry in files_in_partitions(folder) if not entry.name.startswith(prefix)]


def _refuse_other_folders(target: Path, files: Sequence[Path], partition_by: Sequence[str]) -> None:
    """Raises WriteFailed if files that stay in the folder are divided by other columns than those of the output."""
    for file in files:
        columns = [column_of(folder) for folder in file.relative_to(target).parts[:-1]]
        if columns != list(partition_by):
            raise other_partitions(str(target), [column or "" for column in columns], partition_by)


def _refuse_other_columns(
    format: PlainFiles, spark: SparkSession, frame: DataFrame, location: Location, target: Path, output: Output
) -> None:
    """Raises WriteFailed if the folder has files of another format or with other columns, because nobody could read
    it."""
    others = _others(target, f"{output.name}-")
    other_formats = [entry.name for entry in others if not _has_format(entry, location)]
    if other_formats:
        raise fail(
            "WriteFailed",
            f"rows cannot be added to {target} as {format.type}: it contains '{other_formats[0]}'",
            hint="write to another folder, or in the format of its files",
        )
    if format.names_columns or not others:
        return
    existing, new = format.existing_columns(spark, location, str(target)), frame.schema
    if output.partition_by:  # Spark guesses the types of columns in folder names
        existing, new = (_without(schema, output.partition_by) for schema in (existing, new))
    if not format.same_columns(location, existing, new):
        raise fail(
            "WriteFailed",
            f"{target} has the columns {columns_text(existing)}; the output has {columns_text(new)}",
            hint="append needs the same columns; mode overwrite replaces them",
        )


def _without(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    return T.StructType([column for column in schema.fields if column.name not in names])
