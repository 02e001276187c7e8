"""JSON lines, strictly: one object a line, every key once, every value by its text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .verdict import MalformedError

BYTE_ORDER_MARK = "\ufeff"
WHITE_SPACE = " \t"


class Number(str):
    """A number as it is written in the file."""


@dataclass(frozen=True, eq=False)
class Nested:
    """An object or list, which only a column of text could hold."""

    value: Any

    def __eq__(self, other: object) -> bool:
        """True for a text that is the same JSON: the same keys in the same order, numbers with the same digits."""
        if not isinstance(other, str):
            return NotImplemented
        return _shown(_parsed(other)) == _shown(self.value)

    def __hash__(self) -> int:
        return 0


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of a file without its blank lines."""
    lines = re.split(r"\r\n|\r|\n", text.removeprefix(BYTE_ORDER_MARK))
    return [_object(line) for line in lines if line.strip(WHITE_SPACE)]


def _object(line: str) -> dict[str, Any]:
    try:
        pairs = _parsed(line)
    except (ValueError, RecursionError) as error:
        raise MalformedError("DataLoadError", "a line that is not JSON", error) from None
    if not isinstance(pairs, Pairs):
        raise MalformedError("DataLoadError", "a line that is not an object", line)
    if len(dict(pairs)) < len(pairs):
        raise MalformedError("DataLoadError", "a key is there twice", line)
    if any("\udc80" <= char <= "\udcff" for key, _ in pairs for char in key):
        raise MalformedError("DataLoadError", "a key that is not UTF-8", line)
    return {key: _cell(value) for key, value in pairs}


class Pairs(list[tuple[str, Any]]):
    """The keys and values of an object, in their order."""


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def _shown(value: Any) -> str:
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{key!r}:{_shown(inner)}" for key, inner in value) + "}"
    return f"[{','.join(map(_shown, value))}]" if isinstance(value, list) else repr(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _cell(value: Any) -> str | Nested | None:
    """The text of a value; None for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Pairs | list):
        return Nested(value)
    return str(value)
