"""The encodings of text files.

Spark 4 decodes UTF-8, UTF-16 and ISO-8859-1 only. A file in another code page is read as ISO-8859-1, where each byte is
one character, and then each character is replaced by the one that the code page has for its byte.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cache

_ANY_BYTE_ORDER, _LITTLE, _BIG = "utf-16", "utf-16-le", "utf-16-be"
_UNICODE = {"utf-8": "UTF-8", _ANY_BYTE_ORDER: "UTF-16", _LITTLE: "UTF-16LE", _BIG: "UTF-16BE"}
_MARKS = {"utf-8": codecs.BOM_UTF8, _LITTLE: codecs.BOM_UTF16_LE, _BIG: codecs.BOM_UTF16_BE}
_PAGES = {
    *("ascii", "cp437", "cp850", "cp852", "cp858", "cp866", "koi8-r", "koi8-u", "mac-roman"),
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in range(1, 17)),
}
"""The code pages: one byte for each character, the first half as in ASCII."""
REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Encoding:
    """An encoding of text files."""

    name: str
    """Python's name of it."""
    java: str
    """The name of the encoding in which Spark reads the files."""
    label: str
    """The name that the user gave it."""
    from_spark: tuple[str, str] = ("", "")
    """The characters that Spark reads, and those that the bytes mean; for code pages."""

    @property
    def is_unicode(self) -> bool:
        return self.name in _UNICODE

    @property
    def is_utf_8(self) -> bool:
        return self.name == "utf-8"

    @property
    def needs_mark(self) -> bool:
        """True if only a byte order mark at the beginning of a file says how to read it."""
        return self.name == _ANY_BYTE_ORDER

    @property
    def mark(self) -> bytes:
        """The byte order mark that an output writes. UTF-16 is written with the lower byte first, as Windows does."""
        return _MARKS[_LITTLE if self.needs_mark else self.name]

    @property
    def written_as(self) -> str:
        """Python's name of the encoding of an output, after its byte order mark."""
        return _LITTLE if self.needs_mark else self.name

    def foreign_mark(self, first: bytes) -> str | None:
        """Returns the encoding that the first bytes of a file name, if it is another one; None otherwise."""
        marked = next((name for name, mark in _MARKS.items() if first.startswith(mark)), None)
        own = {self.name} if not self.needs_mark else {_LITTLE, _BIG}
        if marked is None or marked in own:
            return None
        return marked if marked == "utf-8" else _ANY_BYTE_ORDER

    def lacks(self, text: str) -> str | None:
        """Returns the first character of a text that cannot be written; None if all can."""
        return next((letter for letter in text if not _can_write(letter, self.name)), None)

    @property
    def letters(self) -> str | None:
        """All characters that can be written; None if that is every character."""
        if self.is_unicode:
            return None
        decoded = bytes(range(256)).decode(self.name, errors="replace")
        return "".join(sorted(set(decoded) - {REPLACEMENT}))


UTF_8 = Encoding("utf-8", _UNICODE["utf-8"], "utf-8")


@cache
def encoding_of(name: str) -> Encoding | None:
    """Returns the encoding with a name such as `utf-8`, `windows-1252` or `latin1`; None if there is none that text
    files can have."""
    try:
        canonical = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if canonical in _UNICODE:
        return Encoding(canonical, _UNICODE[canonical], name)
    if canonical not in _PAGES:
        return None
    decoded = bytes(range(256)).decode(canonical, errors="replace")
    pairs = [(chr(byte), letter) for byte, letter in enumerate(decoded) if chr(byte) != letter]
    return Encoding(canonical, "ISO-8859-1", name, ("".join(a for a, _ in pairs), "".join(b for _, b in pairs)))


def _can_write(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeError:
        return False
    return True
