"""Paths for the files of a case: one file, one folder, nested folders, folders named after values, patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from ..case import ArrowFile, Case, Column, TextFile
from .tables import chance, texts_of

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
ESCAPED = frozenset("\"#%'*/:=?\\{[]^")
UNNAMED = frozenset('\r\n=/%":')
"""Names with one of these are not given to folders."""
HIDDEN = ["_SUCCESS", ".part.crc", "_temporary/0/part.{}", ".hidden/a.{}", "_x.{}", "._a.{}", "_logs/month=01/a.{}"]
NAMES = ["a.{}", "b.{}", "part-00000", "c d.{}", "e[1].{}", "x=y.{}", "é.{}", "month=1.{}"]
File = Callable[[str, Sequence[Column]], TextFile | ArrowFile]


@dataclass(frozen=True)
class Layout:
    """Paths of files, the columns in the names of their folders, and the target of the location."""

    paths: tuple[str, ...]
    target: str
    partitions: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    repeated: bool = False
    """True if files also have the columns of their folders' names."""


@st.composite
def layout_of(
    draw: st.DrawFn, extension: str, columns: Sequence[Column], *, sound: bool, endings: Sequence[str] = ("",)
) -> Layout:
    """One file or a folder of up to three; unless the case is sound, they may be at different depths."""

    def name() -> str:
        return draw(st.sampled_from(NAMES)).format(extension) + draw(st.sampled_from(list(endings)))

    if draw(chance(40)):
        only = name()
        return Layout((only,), "" if draw(st.booleans()) else only)
    partitions = [c for c in columns[1:][: draw(st.sampled_from([0, 0, 0, 1, 1, 2]))] if not set(c.physical) & UNNAMED]
    paths = []
    for _ in range(draw(st.integers(1, 3))):
        folder = "".join(f"{column.physical}={draw(_folder_value(column, sound))}/" for column in partitions)
        if not sound and draw(chance(15)):
            folder += draw(st.sampled_from(["sub/", "month=01/", "deep/er/"]))
        if not sound and draw(chance(10)):
            folder = folder.partition("/")[2]
        paths.append(folder + name())
    hidden = (draw(st.sampled_from(HIDDEN)).format(extension),) if draw(chance(20)) else ()
    target = ""
    if draw(chance(10)) and not partitions:
        target = draw(st.sampled_from([f"*.{extension}*", "*", "[ab].*", "*/*"]))
    elif not sound and draw(chance(5)):
        target = "nothing"
    named = tuple(column.physical for column in partitions)
    return Layout(tuple(dict.fromkeys(paths)), target, named, hidden, repeated=not sound and draw(chance(10)))


def _folder_value(column: Column, sound: bool) -> st.SearchStrategy[str]:
    """A value in the name of a folder: some characters are escaped, and NULL has a name of its own."""
    texts = texts_of(column.type, sound=sound).filter(lambda text: text != "" and "\x00" not in text)
    values = texts.map(lambda text: "".join(f"%{ord(x):02X}" if x in ESCAPED or x < " " else x for x in text))
    return st.one_of(values, values, st.just(NO_VALUE)) if column.nullable else values


def placed(
    draw: st.DrawFn, format: str, columns: tuple[Column, ...], layout: Layout, file: File, **options: Any
) -> Case:
    """A case with the paths of a layout; `file` makes each file from a path and the columns that it has."""
    own = [column for column in columns if layout.repeated or column.physical not in layout.partitions]
    files = [file(path, own) for path in (*layout.paths, *layout.hidden)]
    return Case(format, tuple(files), columns, layout.target, options, draw(asked(columns)))


def asked(columns: Sequence[Column]) -> st.SearchStrategy[tuple[str, ...] | None]:
    """All columns as a rule, else some of them or none."""
    some = st.lists(st.sampled_from([column.name for column in columns]), max_size=2, unique=True).map(tuple)
    return chance(15).flatmap(lambda not_all: some if not_all else st.none())
