"""JSON lines with keys in any order, missing keys, nulls, odd numbers and spellings; some of them damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from ..case import Case, Column, TextFile
from .layouts import layout_of, placed
from .tables import EXTRAS, LINED_NAMES, ODD_NAMES, PLAIN_NAMES, TEXTS, chance, damaged, declared, texts_of

LINE_ENDS = ["\n", "\r\n", "\r"]
PIECES = [
    "{}", "}", "{", '"', ",", " ", "x", "1", " {}", "null", "[", "]", "\n", "\\", '"id":1,', "'", "//", "NaN", "0",
    "\x01",
]  # fmt: skip
NUMBERS = ["1", "-0", "12.50", "1e2", "1E-3", "0.1e+1", "123456789012345678901234567890.1234567890", "1.0", "100E-2"]
OTHERS = ["true", "false", "null", "[]", "{}", "[1, 2.50]", '{"a": {"b": 1.0}}', '[{"id": 1}]', "0.0", "1e400"]
ODD_LINES = [
    "[]", "null", "1", '"x"', "{}", '[{"id": 1}, {"id": 2}]', "{'id': 1}", "{id: 1}", '{"id": 1,}', '{"id": 01}',
    '{"id": NaN}', '{"id": +1}', '{"id": .5}', '{"id": 1} {"id": 2}', '{"id": 1} // x', '{"id": 1}, ',
    '{"id": "\\ud800"}', '{"id": "\\ud83d\\ude00"}', '{"id": "\\q"}', '{"id": "a\tb"}', '{"id": "\\u0000"}',
]  # fmt: skip


@st.composite
def json_cases(draw: st.DrawFn) -> Case:
    """A location with JSON files, and the table that is read from it."""
    sound = draw(chance(65))
    names = PLAIN_NAMES + ODD_NAMES + LINED_NAMES if draw(chance(40)) else PLAIN_NAMES
    columns = draw(declared(names=names))
    layout = draw(layout_of("json", columns, sound=sound, endings=("", "", "", "", ".gz", ".bz2")))
    return placed(draw, "json", columns, layout, lambda path, own: draw(json_file(path, own, sound)))


@st.composite
def json_file(draw: st.DrawFn, path: str, columns: Sequence[Column], sound: bool) -> TextFile:
    styles = st.sampled_from(LINE_ENDS if draw(chance(25)) else [draw(st.sampled_from(LINE_ENDS))])
    sparse = draw(chance(30))
    lines = [draw(_object(columns, sparse, sound)) for _ in range(draw(st.integers(0, 4)))]
    if not sound and draw(chance(25)):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(ODD_LINES)))
    if draw(chance(15)):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["", " ", "\t"])))
    text = "".join(line + draw(styles) for line in lines)
    if draw(chance(20)):
        text = text.rstrip("\r\n")
    if draw(chance(2)):
        text = "\ufeff" + text
    if not sound and draw(chance(30)):
        text = damaged(draw, text, PIECES)
    content = text.encode("utf-8", errors="surrogatepass")
    if not sound and draw(chance(5)):
        content = content.replace(b"a", b"\xe9", 1)
    return TextFile(path, content)


@st.composite
def _object(draw: st.DrawFn, columns: Sequence[Column], sparse: bool, sound: bool) -> str:
    """One object, with its keys in any order."""
    types = {column.physical: column.type for column in columns}
    nullable = {column.physical for column in columns if column.nullable or not sound}
    keys = [name for name in types if name not in nullable or not (sparse and draw(chance(40)))]
    if draw(chance(25)):
        keys += draw(st.lists(st.sampled_from(EXTRAS), max_size=2, unique=sound))
    if keys and not sound and draw(chance(10)):
        keys.append(draw(st.sampled_from(keys)))
    space = draw(st.sampled_from(["", " ", "\t"]))
    pairs = (
        f"{draw(_string(key))}{space}:{space}{draw(_value(types.get(key), key in nullable, sound))}"
        for key in draw(st.permutations(keys))
    )
    return space + "{" + f",{space}".join(pairs) + "}" + space


@st.composite
def _string(draw: st.DrawFn, text: str) -> str:
    """A text as JSON writes it, some characters escaped though they need not be."""
    plain = json.dumps(text, ensure_ascii=draw(st.booleans()))
    if text and draw(chance(10)):
        return '"' + "".join(f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else letter for letter in text) + '"'
    return plain


@st.composite
def _value(draw: st.DrawFn, type: str | None, nullable: bool, sound: bool) -> str:
    if nullable and draw(chance(10)):
        return "null"
    if type is None or (not sound and draw(chance(10))):
        return draw(st.sampled_from(NUMBERS + OTHERS) | TEXTS.flatmap(_string))
    if type in ("string", "integer") and draw(chance(20)):
        return draw(st.sampled_from(NUMBERS if type == "string" else ["1", "-7", "2.0", "9223372036854775807"]))
    if type.startswith("decimal") and draw(chance(60)):
        return draw(
            st.sampled_from(["1", "-0", "1e2", "0.1e+1", "1.0", "100E-2"]) if sound else st.sampled_from(NUMBERS)
        )
    if type == "boolean" and draw(chance(60)):
        return draw(st.sampled_from(["true", "false"]))
    return draw(_string(draw(texts_of(type, sound=sound))))
