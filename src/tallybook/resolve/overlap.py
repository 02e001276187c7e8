"""Finds out whether two paths or urls overlap: they are the same, or one is inside the other.

Paths of this machine are compared as real paths, and by the identity of the folders on the way, because a bind mount
gives one folder two paths that no link connects. A path that is read may be a pattern. It is compared segment by
segment, so `data/*.csv` covers `data/new.csv` before that file exists.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Literal

from tallybook.model.location import Location, is_hidden, local_target

Relation = Literal["is", "contains", "is inside"]
Segment = str | re.Pattern[str]
_SAME_STORE = {"s3": "s3a", "s3n": "s3a", "abfs": "abfss", "wasb": "wasbs"}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(//(?P<host>[^/]*))?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WILD = re.compile(r"[*?]|\A(?:[^\[]|\[(?=\]))*+\[[^]]++\]")
"""A star, a question mark or a class such as `[ab]`. Anchored, because a class that is never closed would otherwise be
tried from each of its brackets."""

_MOST_ALTERNATIVES, _DEEPEST = 1000, 20
"""Choices of `{a,b}` in a pattern multiply: twenty of them in a row are a million paths."""


@dataclass(frozen=True)
class Area:
    """A file, or a folder with everything in it; with patterns among its segments, every path that matches."""

    store: str
    """Empty for this machine, `s3a://bucket` for an object store."""
    segments: tuple[Segment, ...]

    @property
    def name(self) -> str:
        """The last segment."""
        return str(self.segments[-1]) if self.segments else ""

    @cached_property
    def anchors(self) -> dict[tuple[int, int] | None, int]:
        """The existing folders on the way, by identity, with the number of segments that lead to each."""
        depths: dict[tuple[int, int] | None, int] = {None: 0}
        path = Path("/")
        for depth, segment in enumerate(self.segments if not self.store else (), 1):
            if not isinstance(segment, str):
                break
            path /= segment
            try:
                status = path.stat()
            except OSError:
                break
            if status.st_ino:
                depths[status.st_dev, status.st_ino] = depth
        return depths

    def relation(self, other: Area) -> Relation | None:
        """Returns how this area relates to another; None if they have nothing in common."""
        if self.store != other.store:
            return None
        for identity in self.anchors.keys() & other.anchors.keys():
            ours, theirs = self.segments[self.anchors[identity] :], other.segments[other.anchors[identity] :]
            if all(_fits(one, another) for one, another in zip(ours, theirs, strict=False)):
                return "is" if len(ours) == len(theirs) else "contains" if len(ours) < len(theirs) else "is inside"
        return None


def area(target: str) -> Area:
    """Returns the area of a path or url that is not a pattern; links are followed."""
    local = local_target(target)
    if local is not None:
        return Area("", _split(os.path.realpath(local)))
    store, path = _store(target)
    return Area(store, _split(posixpath.normpath(path)))


def area_of(location: Location) -> Area:
    """Returns the area that an output to a location takes. A table of a datasource without paths is its own area."""
    if location.source.path_prefix is None:
        return Area(location.source.store_name, (location.target,))
    return area(location.target)


def areas_read(pattern: str) -> Iterator[Area]:
    """Returns the areas that reading a path, url or pattern reaches. A backslash takes away the meaning of the next
    character in a pattern.

    Links below a folder count as well: a file that is read through a link is read from its real path.
    """
    store, path = _store(pattern)
    for text in _alternatives(path):
        segments = tuple(map(_segment, _split(posixpath.normpath(text))))
        if store or not segments:
            yield Area(store, segments)
            continue
        fixed = next((index for index, segment in enumerate(segments) if not isinstance(segment, str)), len(segments))
        start = os.path.realpath("/" + "/".join(map(str, segments[:fixed])))
        yield Area("", (*_split(start), *segments[fixed:]))
        seen: set[str] = set()
        for existing in _matches(start, segments[fixed:]):
            yield from map(area, _links(existing, seen))


def _store(target: str) -> tuple[str, str]:
    """Splits a target into its store, empty for this machine, and the path in it."""
    match = _URL.match(target)
    if match is None or match["scheme"].lower() == "file":
        return "", target[match.end() :] if match else target
    scheme = match["scheme"].lower()
    return f"{_SAME_STORE.get(scheme, scheme)}://{match['host'] or ''}", target[match.end() :]


def _alternatives(pattern: str) -> Iterator[str]:
    """Returns the pattern once for each choice of its `{a,b}`; if there are too many, one pattern that covers all."""
    if _count(pattern) > _MOST_ALTERNATIVES:
        yield _widened(pattern)
    else:
        yield from _expanded(pattern)


def _count(pattern: str, depth: int = 0) -> int:
    if depth > _DEEPEST:
        return _MOST_ALTERNATIVES + 1
    return prod(sum(_count(choice, depth + 1) for choice in choices) for _, _, choices in _groups(pattern))


def _expanded(pattern: str) -> Iterator[str]:
    groups = _groups(pattern)
    if not groups:
        yield pattern
        return
    start, end, choices = groups[0]
    for choice in choices:
        yield from _expanded(pattern[:start] + choice + pattern[end:])


def _widened(pattern: str) -> str:
    """Returns a pattern that covers all choices: `*` for those within a name, the whole folder for those with a slash.
    It covers everything if a choice may lead upwards."""
    text, done = "", 0
    for start, end, choices in _groups(pattern):
        if ".." in pattern or any("." in choice and not set(choice) - set(".{,}") for choice in choices):
            return "/"
        text += pattern[done:start]
        if any("/" in choice for choice in choices):
            return text.rpartition("/")[0] or "/"
        text, done = text + "*", end
    return text + pattern[done:]


def _groups(pattern: str) -> list[tuple[int, int, list[str]]]:
    """Returns the outermost `{a,b}` of a pattern: start and end of each, and its choices."""
    groups: list[tuple[int, int, list[str]]] = []
    parts: list[int] = []
    depth = index = 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == "{":
            depth += 1
            if depth == 1:
                parts = [index + 1]
        elif letter == "," and depth == 1:
            parts.append(index + 1)
        elif letter == "}" and depth:
            depth -= 1
            if depth == 0:
                choices = [pattern[start : end - 1] for start, end in pairwise([*parts, index + 1])]
                groups.append((parts[0] - 1, index + 1, choices))
        index += 2 if letter == "\\" else 1
    return groups


def _segment(text: str) -> Segment:
    """Returns a segment as Spark's readers understand it: a name, or a pattern of names."""
    if not _WILD.search(_ESCAPED.sub("", text)):
        return _ESCAPED.sub(r"\1", text)
    escaped = _ESCAPED.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], text)
    return re.compile(fnmatch.translate(escaped.replace("[^", "[!")))


def _matches(path: str, rest: Sequence[Segment]) -> Iterator[str]:
    """Returns the existing paths that match."""
    if not rest:
        yield path
        return
    segment = rest[0]
    for name in [segment] if isinstance(segment, str) else [entry.name for entry in _entries(path)]:
        if isinstance(segment, str) or segment.fullmatch(name):
            yield from _matches(f"{path.rstrip('/')}/{name}", rest[1:])


def _links(path: str, seen: set[str]) -> Iterator[str]:
    """Returns the real paths of the links at and below a path, and of the links below their targets."""
    waiting = [path]
    while waiting:
        path = waiting.pop()
        real = os.path.realpath(path)
        if real != path:
            yield real
        if real not in seen:
            seen.add(real)
            waiting += [entry.path for entry in _entries(real) if entry.is_symlink() or entry.is_dir()]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Returns the entries of a folder that Spark's readers see."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not is_hidden(entry.name)]
    except OSError:
        return []


def _fits(one: Segment, other: Segment) -> bool:
    if isinstance(one, str):
        return one == other if isinstance(other, str) else other.fullmatch(one) is not None
    return one.fullmatch(other) is not None if isinstance(other, str) else True


def _split(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)
