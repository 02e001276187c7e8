"""Finds the data files of a folder, and refuses folder layouts that Spark would read only in part.

Spark reads the files of a folder, or those in folders named after values (`month=01/`). It silently leaves out the
rest: files next to such folders, and files in other folders. Here such a mixture is an error.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote, unquote

from pyspark.sql import SparkSession

from tallybook.errors import fail
from tallybook.model.location import Location, is_hidden
from tallybook.storage.credentials import reader
from tallybook.storage.files import GLOB, is_pattern, list_files, literal_and_pattern, path_of, reader_path
from tallybook.storage.partitions import column_of, values_of

_SHOWN = 5
_BRACES = re.compile(r"\{([^{}]*)\}")


def local_files(location: Location) -> list[Path] | None:
    """Returns the data files of a location, sorted; None if it is a pattern or not on this machine's file system."""
    local = location.local_path
    if local is None or is_pattern(location) or not os.path.exists(local):  # noqa: PTH110  # never raises
        return None
    path = Path(local)
    if not path.is_dir():
        _refuse_pipe(path)
    return [path] if path.is_file() else sorted(path.joinpath(*parts) for parts in _walk(path))


def visible(location: Location, files: Iterable[str]) -> tuple[str, ...]:
    """Returns the files of a pattern except those in hidden folders that it does not name: `*` does not match
    `.git`."""
    pattern = _root(location)
    return tuple(
        file
        for file in files
        if not any(is_hidden(part) and part[0] != asked[0] for part, asked in zip(_parts(file), pattern, strict=False))
    )


def check_layout(spark: SparkSession, location: Location) -> None:
    """Raises DataLoadError if Spark would leave out some files of a location, or could not tell the columns in its
    folder names."""
    files = local_files(location)
    if files is not None:
        root = Path(location.local_path or "")
        _check_colons(files)
        below = [file.relative_to(root).parts for file in files]
    else:
        depth = len(_root(location))
        urls = visible(location, list_files(reader(spark, location), reader_path(location)))
        for url in urls if location.local_path is not None else ():
            _refuse_pipe(Path(path_of(url)))
        below = [_parts(url)[depth:] for url in urls]
    layouts = {parts: tuple(column_of(folder) for folder in parts[:-1]) for parts in below}
    if any(layouts.values()):
        _check(location, layouts)


def _check_colons(files: Iterable[Path]) -> None:
    """Raises DataLoadError for names that Hadoop cannot read: it takes the text before a colon for the scheme of a url,
    in the name of a file, and in the name of a folder that has pattern characters."""
    for file in files:
        for name in file.parts:
            if ":" in name and (name == file.name or not GLOB.isdisjoint(name)):
                message = f"{file} cannot be read: Spark cannot handle the ':' in '{name}'"
                raise fail("DataLoadError", message, hint="rename the file or folder")


def folder_values(location: Location, path: str) -> dict[str, str | None]:
    """Returns the columns in the names of a file's folders, below the location, with their values."""
    below = _parts(quote(path, safe=":/"))[len(_root(location)) : -1]
    return values_of(below)


def own_folder_values(location: Location) -> dict[str, str | None]:
    """Returns the columns in the names of the folders that a location itself names (`lake/year=2026/month=01`), with
    their values. A value with a pattern in it is left out: it is not the same for all files."""
    *folders, last = _root(location) or ("",)
    file = location.local_path is not None and Path(location.local_path).is_file()
    if not file and column_of(last):
        folders.append(last)
    named = list(takewhile(column_of, reversed(folders)))
    literal = _parts(literal_and_pattern(location)[0])
    fixed = [folder for folder in named if GLOB.isdisjoint(folder) or folder in literal]
    return values_of(reversed(fixed))


def _check(location: Location, layouts: dict[tuple[str, ...], tuple[str | None, ...]]) -> None:
    named = Counter(layout for layout in layouts.values() if layout and None not in layout)
    columns = max(named, key=lambda layout: named[layout], default=())
    if len(set(columns)) < len(columns):
        [(twice, _)] = Counter(columns).most_common(1)
        example = next(parts for parts, layout in layouts.items() if layout == columns)
        raise fail("DataLoadError", f"{location}: '{'/'.join(example)}' names the column '{twice}' twice")
    others = sorted("/".join(parts) for parts, layout in layouts.items() if layout != columns)
    if not others:
        return
    listed = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    if columns:
        message = f"{location} has files in folders named {'/'.join(f'{column}=…' for column in columns)}, but also"
        hint = "move every file into such a folder, or use the path of one of the folders"
    else:
        others_exist = len(others) < len(layouts)
        message = f"{location} has {'files, but also' if others_exist else 'no files, but'} folders with files:"
        hint = f"use the path of the folder, or a pattern such as {location.target.rstrip('/')}/*"
    raise fail("DataLoadError", f"{message} {listed}", hint=hint)


def _walk(root: Path) -> Iterator[tuple[str, ...]]:
    """Returns the visible files below a folder, as parts of their relative paths. It follows links, as Spark does."""
    folders: list[tuple[Path, tuple[Path, ...]]] = [(root, ())]
    while folders:
        folder, above = folders.pop()
        real = folder.resolve()
        if real in above:
            raise fail("DataLoadError", f"{folder} is a link to a folder that contains it", hint="remove the link")
        for entry in _entries(folder):
            if entry.is_dir():
                folders.append((Path(entry.path), (*above, real)))
            elif entry.is_file():
                yield Path(entry.path).relative_to(root).parts
            else:
                _refuse_pipe(Path(entry.path))


def _entries(folder: Path) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not is_hidden(entry.name)]
    except OSError as error:
        raise fail("DataLoadError", f"the folder {folder} cannot be read: {error.strerror}") from error


def _refuse_pipe(path: Path) -> None:
    """Raises DataLoadError unless the path is a file: reading a pipe would wait for ever."""
    if path.is_file():
        return
    if path.is_symlink() and not path.exists():
        raise fail("DataLoadError", f"{path} is a link to a file that does not exist", hint="remove the link")
    raise fail("DataLoadError", f"{path} is neither a file nor a folder", hint="remove it")


def _root(location: Location) -> tuple[str, ...]:
    """Returns the parts of a location's path; for a pattern with braces, those of its deepest alternative."""
    literal, pattern = literal_and_pattern(location)
    while (expanded := _BRACES.sub(lambda braces: max(braces[1].split(","), key=_depth), pattern)) != pattern:
        pattern = expanded
    return _parts(literal) + _parts(pattern)


def _depth(path: str) -> int:
    return path.count("/")


def _parts(url: str) -> tuple[str, ...]:
    """Returns the parts of a path, without scheme and host."""
    return tuple(unquote(part) for part in re.sub(r"^\w[\w+.-]*:(//[^/]*)?", "", url).split("/") if part)
