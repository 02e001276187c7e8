"""Which files a place has, and which of them have the same columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from tallybook.model.location import Location
from tallybook.storage.base import local_path
from tallybook.storage.credentials import reader

_THREADS = 16
_GLOB = frozenset("\\[]{}*?")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")


def list_files(reader: DataFrameReader, path: str, *, below: bool = False) -> tuple[str, ...]:
    """Returns the data files at a path, folder or pattern, sorted; none if there is nothing. Hidden files do not count.

    With `below`, files in all folders below are listed too. Spark does the listing, so any url it can read will do.
    """
    try:
        return input_files(reader.option("recursiveFileLookup", below).text(path))
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return ()
        raise


def input_files(frame: DataFrame) -> tuple[str, ...]:
    """The files a frame reads, sorted, as `file_path` of Spark's metadata column spells them: percent-encoded, and
    with one slash after `file:`."""
    return tuple(sorted(url.replace("file:///", "file:/", 1) for url in frame.inputFiles()))


def plain(url: str) -> str:
    """A file as a person writes it: decoded, local ones without a scheme."""
    return unquote(url.removeprefix("file:"))


def as_paths(files: Iterable[str]) -> list[str]:
    """Files in the form Spark's readers take: decoded, with pattern characters meaning themselves."""
    return [exactly(unquote(file)) for file in files]


def exactly(path: str) -> str:
    """A path with pattern characters meaning themselves."""
    return "".join(f"\\{letter}" if letter in _GLOB else letter for letter in path)


def is_pattern(location: Location) -> bool:
    """Whether a place stands for whatever fits it."""
    return not _GLOB.isdisjoint(literal_and_pattern(location)[1])


def as_pattern(location: Location) -> str:
    """A place in the form Spark's readers take."""
    literal, pattern = literal_and_pattern(location)
    return exactly(literal) + pattern


def literal_and_pattern(location: Location) -> tuple[str, str]:
    """A target in two: what means itself, and what may be a pattern.

    What is there under the very name that is written is meant by it. So a workspace may lie in `Budget [final]`, and a
    rule in it may still ask for `*.csv`.
    """
    local = local_path(location)
    if local is None:
        return "", location.target
    path = Path(local)
    there = next(folder for folder in (path, *path.parents) if os.path.exists(folder))  # noqa: PTH110  # never raises
    scheme = "file:" if location.target.startswith("file:") else ""
    return scheme + str(there).rstrip("/"), "".join(f"/{part}" for part in path.relative_to(there).parts)


def condition(error: Exception) -> str | None:
    """The name of a Spark error, such as PATH_NOT_FOUND."""
    named = getattr(error, "getCondition", None)
    return named() if named else None


def same_columns(
    spark: SparkSession, location: Location, files: Sequence[str], **options: object
) -> list[tuple[str, ...]]:
    """The CSV files grouped by their header, because Spark looks at the first file only and would fill what another
    file lacks with NULL.

    Local files are asked here: a line each, many at a time. Files elsewhere are asked through Spark, one
    small request each, also many at a time: slower, but it needs no second set of credentials.
    """
    if len(files) < 2:
        return [tuple(files)] if files else []
    with ThreadPoolExecutor(_THREADS) as pool:
        if _readable_here(files):
            shapes = list(pool.map(lambda file: _local_shape(plain(file)), files))
        else:
            asked = reader(spark, location).format(location.source.type).options(**options)  # type: ignore[arg-type]  # any plain value
            shapes = list(pool.map(lambda path: asked.load(path).schema.simpleString(), as_paths(files)))
    groups: dict[str, list[str]] = {}
    for shape, file in zip(shapes, files, strict=True):
        groups.setdefault(shape, []).append(file)
    return [tuple(group) for group in groups.values()]


def header_here(file: str, delimiter: str) -> list[str] | None:
    """The names in the first record of a local CSV file, as they stand there; None when it is not to be seen here.

    Spark would change the names that occur twice, case aside, and finds no file in a folder named like a pattern.
    """
    if len(delimiter) != 1 or not _readable_here([file]):
        return None
    with Path(plain(file)).open(encoding="utf-8-sig", errors="replace", newline="") as opened:
        record = next((record for record in csv.reader(opened, delimiter=delimiter) if record), [])
    return [name or f"_c{index}" for index, name in enumerate(record)]


def _readable_here(files: Sequence[str]) -> bool:
    """Local, uncompressed, and seen by this process too: with Spark Connect the server may be another machine."""
    return all(
        file.startswith("file:") and not file.endswith(_COMPRESSED) and Path(plain(file)).is_file() for file in files
    )


def _local_shape(path: str) -> str:
    with Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return file.readline().rstrip("\r\n")
