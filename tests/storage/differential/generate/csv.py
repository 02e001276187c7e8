"""CSV files with every legal quoting, line end, order of columns and blank line; some of them damaged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from ..case import Case, Column, TextFile
from .layouts import layout_of, placed
from .tables import EXTRAS, LINED_NAMES, ODD_NAMES, PLAIN_NAMES, TEXTS, chance, damaged, declared, texts_of

DELIMITERS = st.sampled_from([",", ",", ",", ";", "\t", "|", "||", "::", " ", "^"])
LINE_ENDS = ["\n", "\r\n", "\r"]
PIECES = ['"', '""', ",", ";", "\n", "\r", " ", "x", '"x', '",', "\r\n", "\x00"]


@st.composite
def csv_cases(draw: st.DrawFn) -> Case:
    """A location with CSV files, and the table that is read from it."""
    sound = draw(chance(65))
    has_header = not draw(chance(20))
    names = PLAIN_NAMES + ODD_NAMES + LINED_NAMES if draw(chance(40)) else PLAIN_NAMES
    columns = draw(declared(names=names))
    if not has_header:
        columns = tuple(column for column in columns if column.name != "again")
    options: dict[str, Any] = {"delimiter": draw(DELIMITERS), "has_header": has_header}
    if draw(chance(30)):
        options["null_value"] = draw(st.sampled_from(["NA", "NULL", "\\N", " ", "0", "-"]))
    layout = draw(layout_of("csv", columns, sound=sound, endings=("", "", "", "", ".gz", ".bz2", ".deflate")))
    return placed(draw, "csv", columns, layout, lambda path, own: draw(csv_file(path, own, options, sound)), **options)


@st.composite
def csv_file(draw: st.DrawFn, path: str, columns: Sequence[Column], options: dict[str, Any], sound: bool) -> TextFile:
    delimiter = options["delimiter"]
    styles = st.sampled_from(LINE_ENDS if draw(chance(25)) else [draw(st.sampled_from(LINE_ENDS))])
    physical = list(dict.fromkeys(column.physical for column in columns))
    types = {column.physical: column.type for column in columns}
    nullable = {column.physical for column in columns if column.nullable}
    if options["has_header"]:
        extras = draw(st.lists(st.sampled_from(EXTRAS), max_size=2)) if draw(chance(30)) else []
        names = draw(st.permutations([*physical, *extras]))
        if not sound and draw(chance(10)):
            names = names[1:] or names
    else:
        names = physical
    lines = [names] if options["has_header"] else []
    for _ in range(draw(st.integers(0, 4))):
        lines.append(
            [draw(_cell(types.get(name), options.get("null_value", ""), name in nullable, sound)) for name in names]
        )
    text = "\ufeff" if draw(chance(15)) else ""
    blank = draw(chance(20))
    for number, line in enumerate(lines):
        if blank and draw(chance(40)):
            text += draw(styles)
        record = delimiter.join(draw(_quoted(cell, delimiter, alone=len(line) == 1)) for cell in line)
        text += record + (draw(styles) if number < len(lines) - 1 or not draw(chance(30)) else "")
    if blank and draw(chance(30)):
        text += draw(styles)
    if not sound and draw(chance(40)):
        text = damaged(draw, text, [*PIECES, delimiter])
    content = text.encode()
    if not sound and draw(chance(5)):
        content = content.replace(b"a", b"\xe9", 1) + b"\xff"
    return TextFile(path, content, compressed=sound or not draw(chance(10)))


@cache
def _cell(type: str | None, null: str, nullable: bool, sound: bool) -> st.SearchStrategy[str]:
    texts = TEXTS if type is None else texts_of(type, sound=sound)
    if sound and not nullable:
        return texts.filter(lambda text: text != null)
    return st.one_of(texts, texts, texts, st.just(null))


@st.composite
def _quoted(draw: st.DrawFn, cell: str, delimiter: str, *, alone: bool) -> str:
    """A cell in quotes where it needs them, and sometimes where it does not."""
    must = cell.startswith('"') or any(end in cell for end in "\r\n") or (cell + delimiter).index(delimiter) < len(cell)
    if must or ('"' in cell and draw(chance(70))) or (alone and not cell and draw(st.booleans())) or draw(chance(20)):
        padding = draw(st.sampled_from([" ", "\t", "  "])) if draw(chance(5)) else ""
        return '"' + cell.replace('"', '""') + '"' + ("" if delimiter in padding else padding)
    return cell
