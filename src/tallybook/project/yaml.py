"""Reads YAML 1.2 into plain values, and keeps the position of every key and value. No other module reads YAML."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scanner import Scanner

from tallybook.errors import Problem
from tallybook.project.files import SETTINGS_FILE
from tallybook.project.hide import cover_lines, cover_secrets
from tallybook.source import Place, SourceText

MAX_VALUES = 200_000
"""The maximum number of values in one file; the values of an alias count each time."""
_MAX_DEPTH = 100
Path = tuple[str | int, ...]

EXPRESSION_KEY = "expression"
"""Its value is text even where YAML reads null: NULL is a value of the expression language."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class WrittenInteger(int):
    """A YAML integer that keeps its written form, for keys whose value is text."""

    text: str


class WrittenDecimal(Decimal):
    """An exact YAML number with a fraction, which keeps its written form."""

    text: str


@dataclass(frozen=True)
class Document:
    """One YAML document: its value, and the position of every part of it."""

    file: str
    value: Any
    lines: Sequence[str] = field(repr=False)
    nodes: dict[Path, tuple[Node | None, Node]] = field(repr=False)
    """(key node, value node) by path."""

    @classmethod
    def unread(cls, file: str) -> Document:
        """Returns an empty document in place of a file that could not be read."""
        start = StreamMark(file, 0, 0, 0)
        return cls(file, None, (), {(): (None, ScalarNode("", "", start, start))})

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Returns the position of a value (or its key); for a missing path, of the nearest part that exists."""
        while path and path not in self.nodes:
            path, key = path[:-1], True
        key_node, value_node = self.nodes[path]
        nothing = isinstance(value_node, ScalarNode) and value_node.start_mark.index == value_node.end_mark.index
        return self._at(key_node if key_node is not None and (key or nothing) else value_node)

    def covers(self, place: Place) -> bool:
        """True if a position is inside the document."""
        root = self.nodes[()][1]
        first, last = root.start_mark, root.end_mark
        at = (place.line - 1, place.column - 1)
        return place.file == self.file and (first.line, first.column) <= at <= (last.line, last.column)

    def _at(self, node: Node) -> Place:
        line, column = node.start_mark.line, node.start_mark.column
        end = node.end_mark.column if node.end_mark.line == line else column + 1
        return Place(self.file, line + 1, column + 1, self._line(line), max(1, end - column))

    def _line(self, line: int) -> str:
        return self.lines[line] if line < len(self.lines) else ""

    def text(self, path: Path, label: str = "") -> SourceText | None:
        """Returns a scalar as text with the position of every character; None if the path has no scalar."""
        node = self.nodes.get(path, (None, None))[1]
        if not isinstance(node, ScalarNode):
            return None
        return SourceText(node.value, self._at(node), _offsets(node, self.lines), self.lines, label)


@lru_cache(maxsize=256)
def load_documents(content: bytes, file: str) -> tuple[Sequence[Document], Sequence[Problem]]:
    """Returns all documents of a file, and the problems that prevent reading it.

    A process that opens a workspace again reads only the files that have changed: parsing them is most of the work.
    """
    text, problem = _decode(content, file)
    if problem is not None:
        return [], [problem]
    lines = cover_lines(text)
    documents: list[Document] = []
    problems: list[Problem] = []
    try:
        reader = YAML(typ="safe", pure=True)
        reader.Scanner = _Scanner
        values = 0
        for root in reader.compose_all(text):
            problems += cover_secrets(root, file, lines)
            builder = _Builder(file, lines, MAX_VALUES - values)
            value = builder.build(root, ())
            problems += builder.problems
            values += len(builder.nodes)
            if value is not None:
                documents.append(Document(file, value, lines, builder.nodes))
    except _RefusedError as error:
        problems.append(_invalid(file, str(error), None, error.mark.line, error.mark.column, lines))
    except MarkedYAMLError as error:
        problems.append(_unreadable(error, file, lines))
    except RecursionError:
        problems.append(_invalid(file, _TOO_DEEP, lines=lines))
    except YAMLError as error:
        problems.append(_invalid(file, f"the YAML cannot be read: {str(error).splitlines()[0]}", lines=lines))
    if not documents and not problems:
        hint = "add `name:`" if file == SETTINGS_FILE else "add a document such as `dataset:`, or delete the file"
        problems.append(_invalid(file, "the file is empty", hint))
    return documents, problems


def _decode(content: bytes, file: str) -> tuple[str, Problem | None]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n")
        what = "UTF-16 text, " if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else ""
        return "", _invalid(file, f"the file is {what}not UTF-8 text", "save it as UTF-8", line=line)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    control = _CONTROL.search(text)
    if control is not None:
        before = text[: control.start()]
        reason = f"the file contains the control character {ord(control[0]):#04x}; it is not text"
        return "", _invalid(file, reason, "delete it", before.count("\n"), control.start() - before.rfind("\n") - 1)
    return text, None


def _invalid(
    file: str,
    message: str,
    hint: str | None = None,
    line: int = 0,
    column: int = 0,
    lines: Sequence[str] = (),
    length: int = 1,
) -> Problem:
    text = lines[line] if line < len(lines) else ""
    return Problem("InvalidYaml", message, hint, Place(file, line + 1, column + 1, text, length), path="")


def _unreadable(error: MarkedYAMLError, file: str, lines: Sequence[str]) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    reason = (error.problem or "the YAML cannot be read").strip()
    if "\\t" in reason or (line < len(lines) and lines[line].lstrip(" ").startswith("\t")):
        return _invalid(file, "YAML does not allow a tab here", "indent with spaces", line, column, lines)
    message, hint = next((said for part, said in _IN_OTHER_WORDS.items() if part in reason), (reason, None))
    if message == _SECOND_COLON and line < len(lines) and ":" not in lines[line][:column]:
        # The first key of its line continues the text of the line before, because it is indented deeper.
        message, hint = "this key does not fit what is before it", "check the indentation"
    return _invalid(file, message, hint, line, column, lines)


_SECOND_COLON = "a second ': ' is not allowed here"
_IN_OTHER_WORDS: dict[str, tuple[str, str | None]] = {
    "mapping values are not allowed": (_SECOND_COLON, "put text that contains ': ' in quotes"),
    "could not find expected ':'": ("this key has no ':'", "write `key: value`; text over several lines needs `|`"),
    "did not find expected <block end>": ("this does not fit what is before it", "check the indentation and quotes"),
    "expected <block end>": ("this does not fit what is before it", "check the indentation, and text after quotes"),
    "expected ',' or": ("a ',' or the closing bracket is missing before this", None),
    "expected the node content": ("a value is missing before this", "check commas and brackets"),
    "cannot start any token": ("this character cannot begin a value", "put the value in quotes"),
    "undefined alias": ("there is no anchor of this name before it", "put text that begins with * in quotes"),
    "unexpected end of stream": ("a quote or bracket is never closed", None),
    "while scanning a quoted scalar": ("a quote is never closed", None),
}
"""A part of each parser error, and the message and hint that users get instead."""


class _RefusedError(Exception):
    """A document that is valid YAML, but is refused."""

    def __init__(self, message: str, mark: StreamMark) -> None:
        super().__init__(message)
        self.mark = mark


_TOO_DEEP = "the YAML is nested too deeply"


class _Scanner(Scanner):
    """Refuses deep nesting of brackets early, because for each bracket the scanner checks all open ones."""

    def fetch_flow_collection_start(self, *args: Any, **named: Any) -> None:
        if self.flow_level >= _MAX_DEPTH:
            raise _RefusedError(_TOO_DEEP, self.reader.get_mark())
        super().fetch_flow_collection_start(*args, **named)


class _Builder:
    """Converts nodes to values, and keeps each node by its path."""

    def __init__(self, file: str, lines: Sequence[str], most: int) -> None:
        self.nodes: dict[Path, tuple[Node | None, Node]] = {}
        self.problems: list[Problem] = []
        self._file = file
        self._lines = lines
        self._most = most
        self._parents: list[int] = []

    def build(self, node: Node, path: Path, key: Node | None = None) -> Any:
        self.nodes[path] = (key, node)
        if id(node) in self._parents:
            raise _RefusedError("an anchor contains itself", node.start_mark)
        if len(self.nodes) > self._most:
            raise _RefusedError(f"the file has more than {MAX_VALUES:,} values, aliases counted", node.start_mark)
        if len(self._parents) > _MAX_DEPTH:
            raise _RefusedError(_TOO_DEEP, node.start_mark)
        if isinstance(node, ScalarNode):
            self._join_surrogates(node)
            return _scalar(node)
        self._parents.append(id(node))
        try:
            if isinstance(node, SequenceNode):
                return tuple(self.build(item, (*path, index)) for index, item in enumerate(node.value))
            assert isinstance(node, MappingNode)
            return dict(self._entries(node, path))
        finally:
            self._parents.pop()

    def _entries(self, node: MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._report(key, "a key must be plain text")
                continue
            self._join_surrogates(key)
            name = str(key.value)
            if name == "<<":
                self._report(key, "YAML 1.2 has no merge keys", "write the keys out")
                continue
            if name in seen:
                first = seen[name].start_mark.line + 1
                hint = "keep one of them"
                if not path and self._file != SETTINGS_FILE:
                    hint = "separate documents with a line `---`"
                self._report(key, f"the key '{name}' is already defined on line {first}", hint)
                continue
            seen[name] = key
            built = self.build(value, (*path, name), key)
            yield name, value.value if name == EXPRESSION_KEY and built is None else built

    def _join_surrogates(self, node: ScalarNode) -> None:
        """Joins characters that JSON writes as two halves, `\\ud83d\\ude00`; reports half a character."""
        if not _SURROGATE.search(node.value):
            return
        pairs = node.value.encode("utf-16-le", errors="surrogatepass")
        node.value = pairs.decode("utf-16-le", errors="replace")
        if "\ufffd" in node.value:
            self._report(node, "the text contains half of a character", "write the character itself")

    def _report(self, node: Node, message: str, hint: str | None = None) -> None:
        mark, length = node.start_mark, len(node.value) if isinstance(node, ScalarNode) else 1
        self.problems.append(_invalid(self._file, message, hint, mark.line, mark.column, self._lines, length))


def _scalar(node: ScalarNode) -> Any:
    """The value of a scalar by the core schema of YAML 1.2; quoted text is always text."""
    text = str(node.value)
    if node.style in ("'", '"', "|", ">"):
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    return _number(text) if _FLOAT.fullmatch(text) else text


def _number(text: str) -> WrittenInteger | WrittenDecimal | str:
    """Returns an exact number; the text itself if it has too many digits."""
    written: WrittenInteger | WrittenDecimal
    try:
        written = WrittenInteger(text) if _INTEGER.fullmatch(text) else WrittenDecimal(text)
    except (ValueError, ArithmeticError):
        return text
    written.text = text
    return written


_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "\0", "e": "\x1b", "r": "\r", " ": " "}


def _offsets(node: ScalarNode, lines: Sequence[str]) -> Sequence[tuple[int, int]]:
    """Returns the (line, column) of every character of a scalar; empty if the notation is too complex."""
    line, column = node.start_mark.line, node.start_mark.column
    if node.style == "|":
        return _block_offsets(node, lines)
    if node.start_mark.line != node.end_mark.line or line >= len(lines):
        return _folded_offsets(node, lines)
    raw = lines[line][column : node.end_mark.column]
    offsets: list[tuple[int, int]] = []
    read: list[str] = []
    at = 1 if node.style in ("'", '"') else 0
    end = len(raw) - at
    while at < end:
        char, width = raw[at], 1
        if node.style == '"' and char == "\\" and at + 1 < end:
            char, width = _ESCAPES.get(raw[at + 1], ""), 2
        elif node.style == "'" and raw[at : at + 2] == "''":
            width = 2
        read.append(char)
        offsets.append((line, column + at))
        at += width
    return offsets if "".join(read) == node.value else ()


def _folded_offsets(node: ScalarNode, lines: Sequence[str]) -> Sequence[tuple[int, int]]:
    """Text over several lines, where YAML changed white space only."""
    line, column = node.start_mark.line, node.start_mark.column + (node.style in ("'", '"'))
    if node.style == ">":
        line, column = line + 1, 0
    offsets: list[tuple[int, int]] = []
    for char in node.value:
        if not char.isspace():
            while line < len(lines) and (column >= len(lines[line]) or lines[line][column].isspace()):
                line, column = (line, column + 1) if column < len(lines[line]) else (line + 1, 0)
            if line >= len(lines) or lines[line][column] != char:
                return ()
        offsets.append((line, column))
        column += not char.isspace()
    return offsets


def _block_offsets(node: ScalarNode, lines: Sequence[str]) -> Sequence[tuple[int, int]]:
    offsets: list[tuple[int, int]] = []
    read: list[str] = []
    first = node.start_mark.line + 1
    body = lines[first : node.end_mark.line + 1]
    indent = next((len(line) - len(line.lstrip(" ")) for line in body if line.strip()), 0)
    for number, line in enumerate(body, start=first):
        for column, char in enumerate(line[indent:] + "\n", start=indent):
            read.append(char)
            offsets.append((number, column))
    text = "".join(read)
    return offsets[: len(node.value)] if text.startswith(node.value) else ()
