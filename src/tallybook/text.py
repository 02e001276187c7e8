"""Makes text of users safe to print: on one line, without characters that control the terminal."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

_NOT_SHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, among them the escape sequences of terminals
    "\xad\u180e\u200b\u2060-\u2065\ufeff\U000e0000-\U000e007f"  # invisible
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # change the direction of what follows
    "\u2028\u2029\ufff9-\ufffb"  # line separators, annotations
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # no characters at all: halves of a pair, such as bytes of a file name
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
JOINERS = "\u200c\u200d"
"""Characters in emoji and some scripts that join their neighbours and have no width."""


def printable(text: str) -> str:
    """Returns the text with every character that a screen would not show as itself written as an escape, such as
    `\\x1b`.

    Letters of all languages and emoji stay as they are. Printable text does not change.
    """
    return _NOT_SHOWN.sub(lambda match: escaped(match[0]), text)


def escaped(char: str) -> str:
    """Returns a character as an escape: `\\n`, `\\x1b`, `\\u202e`."""
    code = ord(char)
    long = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return _SHORT.get(char, long)


def width(text: str) -> int:
    """Returns the columns that a printable text takes on a terminal: two for 漢, none for a combining accent."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if char in JOINERS or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def padded(text: str, columns: int) -> str:
    """Returns the text with spaces after it, up to that width."""
    return text + " " * (columns - width(text))


def shortened(text: str, most: int = 200) -> str:
    """Returns the text, cut if it is too long for a message."""
    return text if len(text) <= most else f"{text[:most]}…"


Role = Literal["type", "caret", "hint", "difference", "passed", "warning", "failed", "title", "label", "faint"]


@dataclass(frozen=True)
class Marked:
    """A part of a line that a coloured screen shows in the style of its role."""

    text: str
    role: Role


Line = tuple[str | Marked, ...]
"""One line for people, made of parts. Nothing in a part can end the line."""


def unstyled(line: Line) -> str:
    """Returns a line as printable text, without styles."""
    return "".join(printable(part.text if isinstance(part, Marked) else part) for part in line)
