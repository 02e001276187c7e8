"""Lists the files of a location, and converts their urls, paths and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader

from tallybook.errors import fail
from tallybook.model.datasource import FileOptions
from tallybook.model.location import Location
from tallybook.storage.failure import SPARK_ERRORS, error_condition, missing_connector

GLOB = frozenset("\\[]{}*?")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")
_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
"""The first bytes of compressed files, by the end of their names."""


def list_files(reader: DataFrameReader, path: str) -> tuple[str, ...]:
    """Returns the data files at a path, folder or pattern and in all folders below it, sorted; none if there is
    nothing. Hidden files do not count.

    Spark does the listing, so any url it can read will do. Without `recursiveFileLookup` it would look for columns in
    the names of the folders, and fail where a pattern also matches hidden ones.
    """
    try:
        return input_files(reader.option("recursiveFileLookup", True).text(path))
    except SPARK_ERRORS as error:
        if error_condition(error) == "PATH_NOT_FOUND":
            return ()
        if missing := missing_connector(error, path):
            raise fail("DataLoadError", missing[0], hint=missing[1]) from error
        raise


def input_files(frame: DataFrame) -> tuple[str, ...]:
    """Returns the urls of the files that a frame reads, sorted. They are spelled as `file_path` of Spark's metadata
    column is: percent-encoded, and with one slash after `file:`."""
    return tuple(sorted(url.replace("file:///", "file:/", 1) for url in frame.inputFiles()))


def path_of(url: str) -> str:
    """Returns the path of a url as a person writes it: decoded, and without a scheme if it is local."""
    return unquote(url.removeprefix("file:"))


def reader_paths(files: Iterable[str]) -> list[str]:
    """Returns the paths that make Spark's readers read exactly these urls: decoded, with pattern characters escaped."""
    return [escape_pattern(unquote(file)) for file in files]


def escape_pattern(path: str) -> str:
    """Returns a path with its pattern characters escaped, so that Spark's readers take it literally."""
    return "".join(f"\\{letter}" if letter in GLOB else letter for letter in path)


def is_pattern(location: Location) -> bool:
    """True if the path of a location is a glob pattern."""
    return not GLOB.isdisjoint(literal_and_pattern(location)[1])


def reader_path(location: Location) -> str:
    """Returns the path that makes Spark's readers read a location."""
    literal, pattern = literal_and_pattern(location)
    return escape_pattern(literal) + pattern


def literal_and_pattern(location: Location) -> tuple[str, str]:
    """Splits a target into a literal path and the rest, which may be a pattern.

    A path that exists under its exact name is literal. So a workspace may be in `Budget [final]`, and a rule in it may
    still use `*.csv`.
    """
    local = location.local_path
    if local is None:
        return "", location.target
    path = Path(local)
    existing = next(folder for folder in (path, *path.parents) if os.path.exists(folder))  # noqa: PTH110  # never raises
    scheme = "file:" if location.target.startswith("file:") else ""
    return scheme + str(existing).rstrip("/"), "".join(f"/{part}" for part in path.relative_to(existing).parts)


def file_options(location: Location) -> FileOptions:
    """Returns the options of a location in files. Raises TypeError for other locations."""
    options = location.source.options
    if not isinstance(options, FileOptions):
        raise TypeError(f"{location} has no files")
    return options


def check_compression(files: Iterable[str]) -> None:
    """Raises DataLoadError for a local file that is not compressed as its name says.

    Spark may find no rows in it instead of failing.
    """
    for file in files:
        path = Path(path_of(file))
        if path.suffix not in _COMPRESSED or not file.startswith("file:") or not path.is_file():
            continue
        magic = _MAGIC.get(path.suffix, b"")
        with path.open("rb") as opened:
            first = opened.read(max(1, len(magic)))
        if not first or not first.startswith(magic):
            message = f"{path} is not compressed as its name says ({path.suffix})" + ("" if first else ": it is empty")
            raise fail("DataLoadError", message, hint="rename the file, or replace it with a good copy")


def readable_here(files: Sequence[str]) -> bool:
    """True if this process can read the files too: they are local and uncompressed, and a Spark Connect server is not
    on another machine."""
    return all(
        file.startswith("file:") and not file.endswith(_COMPRESSED) and Path(path_of(file)).is_file() for file in files
    )
