"""Finds secrets in workspace files: reports each as a problem, and covers it with stars.

Both the value and its source line are covered. So neither a message, nor the source line below it, nor the store
can repeat the secret, whatever else is wrong with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tallybook.errors import Problem
from tallybook.project.files import SETTINGS_FILE
from tallybook.secrets import REFERENCE, hide_secrets, names_secret
from tallybook.source import Place, path_text

Path = tuple[str | int, ...]
_BY_REFERENCE = "take it out of the file and write `credential_ref: env:NAME` or `credential_ref: file:PATH`"
_BY_CONF = "put it into spark-defaults.conf, or into the environment variable TALLYBOOK_SPARK_CONF"
_SETTING_HINTS = {
    "store": "take it out of the file and set TALLYBOOK_STORE_CREDENTIAL to env:NAME or file:PATH",
    "remote": "take it out of the file and set TALLYBOOK_SPARK_REMOTE to the whole url",
}


@dataclass(frozen=True)
class _Covered:
    """A text with its secret covered, and the message for the user; None if the checker reports it anyway."""

    text: str
    message: str | None = None
    hint: str | None = None


def cover_lines(text: str) -> list[str]:
    """Returns the lines of a file with secrets covered, as messages can show them."""
    return [hide_secrets(line) for line in text.split("\n")]


def cover_secrets(root: Node, file: str, lines: list[str]) -> list[Problem]:
    """Covers the secrets of one document, in its nodes and in `lines`; returns the problems."""
    problems: list[Problem] = []
    is_settings = file == SETTINGS_FILE
    for node, path in _scalars(root):
        covered = _cover(str(node.value), path, is_settings)
        if covered.text == node.value:
            continue
        node.value = covered.text
        _cover_lines_of(node, lines)
        if covered.message is not None:
            start = node.start_mark
            place = Place(file, start.line + 1, start.column + 1, lines[start.line], len(covered.text))
            problems.append(Problem("SecretInYaml", covered.message, covered.hint, place, path=path_text(path)))
    return problems


def _cover(text: str, path: Path, is_settings: bool) -> _Covered:
    key = str(path[-1]) if path else ""
    stars = "*" * len(text)
    is_spark = path[-3:-1] == ("spark", "conf")
    in_datasource = path[:1] == ("datasource",) or (path[:1] == ("environments",) and "datasources" in path[2:3])
    if key == "credential_ref":
        return _Covered(text if re.match(REFERENCE, text) else stars)
    if is_spark and names_secret(key) and text.lower() not in ("true", "false"):
        return _Covered(stars, f"the Spark setting '{key}' is a secret", _BY_CONF)
    if (is_settings or in_datasource) and not is_spark and names_secret(key):
        return _Covered(stars, f"'{key}' is a secret", _BY_REFERENCE)
    own_hint = _SETTING_HINTS.get(key) if is_settings else None
    hint = own_hint or (_BY_CONF if is_spark else _BY_REFERENCE if in_datasource else "take it out of the file")
    where = f"'{key}' contains" if key and not isinstance(path[-1], int) else "this contains"
    return _Covered(hide_secrets(text), f"{where} a password, a token or a key", hint)


def _scalars(root: Node) -> Iterator[tuple[ScalarNode, Path]]:
    """Yields every scalar once, keys included; the value of an alias only where its anchor is."""
    seen: set[int] = set()
    waiting: list[tuple[Node, Path]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            yield node, path
        elif isinstance(node, SequenceNode):
            waiting += [(item, (*path, index)) for index, item in enumerate(node.value)]
        elif isinstance(node, MappingNode):
            for key, value in node.value:
                name = str(key.value) if isinstance(key, ScalarNode) else ""
                waiting += [(key, (*path,)), (value, (*path, hide_secrets(name)))]


def _cover_lines_of(node: ScalarNode, lines: list[str]) -> None:
    """Covers a scalar where it is written, unless the covered line has exactly its covered text already."""
    start, end = node.start_mark, node.end_mark
    if start.line == end.line and node.value in lines[start.line][start.column : end.column]:
        return
    for number in range(start.line, min(end.line + 1, len(lines))):
        line = lines[number]
        first = start.column if number == start.line else 0
        last = end.column if number == end.line else len(line)
        lines[number] = line[:first] + re.sub(r"\S", "*", line[first:last]) + line[last:]
