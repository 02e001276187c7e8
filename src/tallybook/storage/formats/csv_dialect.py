"""The grammar of CSV: where records and fields end, and what is wrong with quotes.

A record ends at LF, CRLF or CR. A field that begins with a quote ends at the next quote that is not doubled; only
spaces, tabs and control characters may follow before the delimiter or the end of the record, and do not count. In any
other field a quote is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from tallybook.model.datasource import FileOptions

_QUOTE = ord('"')
_INSIDE = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_PADDING = [chr(code) for code in range(0x21) if chr(code) not in "\r\n"]
"""What Spark's parser ignores after a closing quote."""


class Quote(Enum):
    """Says if the text after the last quote that is not doubled is inside or outside a quoted field."""

    OPEN = "inside a quoted field"
    CLOSED = "outside"
    UNCLEAR = "inside or outside, depending on what comes before"


@dataclass(frozen=True)
class Fault:
    """A misplaced quote."""

    line: int
    unclosed: bool
    """True for a quote that is opened and never closed, False for text after a closing quote."""


@dataclass(frozen=True)
class Dialect:
    """CSV with a delimiter of one or more characters."""

    delimiter: str

    @classmethod
    def of(cls, options: FileOptions) -> Dialect:
        """Returns the dialect of a datasource's options; a tab may be written as `\\t`."""
        return cls("\t" if options.delimiter == r"\t" else options.delimiter)

    @property
    def spark_delimiter(self) -> str:
        """The delimiter as an option of Spark, which takes a backslash for the beginning of an escape."""
        return self.delimiter.replace("\\", "\\\\")

    @property
    def doubles_quotes(self) -> bool:
        """True if Spark's parser may double a quote in an unquoted field: its parser for long delimiters does."""
        return len(self.delimiter) > 1

    @property
    def records(self) -> str:
        """A pattern in Java's syntax that finds all records of a text, also those with faults, but not blank lines.

        Possessive quantifiers keep Java from recursing into each character.
        """
        return rf'(?:(?<=^|[\r\n]|{self._escaped})"[^"]*+(?:""[^"]*+)*+(?:"|\z)|[^\r\n"]++|")++'

    @property
    def next_field(self) -> str:
        """A pattern in Java's syntax for a delimiter and a field without faults, which is its group 1."""
        return rf'{self._escaped}({_QUOTED}{self._padding}|(?!")(?:(?!{self._escaped})[^\r\n])*+)'

    @property
    def padding(self) -> str:
        """The characters that do not count after a closing quote."""
        return "".join(letter for letter in _PADDING if letter not in self.delimiter)

    def first_record(self, text: str) -> tuple[tuple[str, ...], str] | None:
        """Returns the fields of the first record and the blank lines before it; None if it is incomplete or has a
        fault. The first record of a text without records has no fields."""
        start = at = len(text) - len(text.lstrip("\r\n"))
        fields: list[str] = []
        while start < len(text):
            field = self._field.match(text, at)
            if field is None:
                return None
            fields.append(field[2] if field[1] is None else field[1].replace('""', '"'))
            if not text.startswith(self.delimiter, field.end()):
                break
            at = field.end() + len(self.delimiter)
        return tuple(fields), text[:start]

    def last_quote(self, lines: bytes) -> Quote | None:
        """Returns the state after the last quote of whole lines; None if every quote is doubled, or there is none.

        A quote that opens a field follows a delimiter or a line end. A quote that closes a field precedes one.
        """
        end = len(lines)
        while (last := lines.rfind(b'"', 0, end)) >= 0:
            first = last
            while first and lines[first - 1] == _QUOTE:
                first -= 1
            if (last - first) % 2 == 0:
                if not self._field_start.search(lines, max(0, first - len(self._bytes)), first):
                    return Quote.CLOSED
                return Quote.UNCLEAR if self._field_end.match(lines, last + 1) else Quote.OPEN
            end = first
        return None

    def fault(self, blocks: Iterable[bytes], *, for_spark: bool = False) -> Fault | None:
        """Returns the first fault in a file, which is given in blocks of whole lines.

        With `for_spark`, everything that Spark's parser misreads is a fault: a CR without LF outside quotes or before a
        closing quote; with a delimiter of several characters, a quote in an unquoted field, which it may double.
        """
        outside = self._outside_for_spark if for_spark else self._outside
        line, opened = 1, 0
        for block in blocks:
            at = 0
            if opened:
                at = _end(_INSIDE, block, 0)
                if at == len(block):
                    line += _line_ends(block)
                    continue
                if not self._field_end.match(block, at + 1) or (for_spark and block[:at].endswith(b"\r")):
                    return Fault(line + _line_ends(block[:at]), unclosed=False)
                at, opened = at + 1, 0
            at = _end(outside, block, at)
            if at < len(block):
                closing = _end(_INSIDE, block, at + 1)
                if block[at] != _QUOTE or closing < len(block):
                    return Fault(line + _line_ends(block[:closing]), unclosed=False)
                opened = line + _line_ends(block[:at])
            line += _line_ends(block)
        return Fault(opened, unclosed=True) if opened else None

    @cached_property
    def _bytes(self) -> bytes:
        return self.delimiter.encode()

    @cached_property
    def _escaped(self) -> str:
        return re.escape(self.delimiter)

    @cached_property
    def _padding(self) -> str:
        return "[" + "".join(f"\\x{ord(letter):02x}" for letter in self.padding) + "]*+"

    @cached_property
    def _field(self) -> re.Pattern[str]:
        end = rf"(?={self._escaped}|[\r\n]|\Z)"
        return re.compile(rf'"((?:[^"]|"")*+)"{self._padding}{end}|((?!")(?:(?!{self._escaped})[^\r\n])*+)')

    @cached_property
    def _field_start(self) -> re.Pattern[bytes]:
        """Matches at the end of a text if a field can start there."""
        return re.compile(rb"(?:\A|[\r\n]|" + re.escape(self._bytes) + rb")\Z")

    @cached_property
    def _field_end(self) -> re.Pattern[bytes]:
        return re.compile(self._padding.encode() + rb"(?:[\r\n]|\Z|" + re.escape(self._bytes) + rb")")

    @cached_property
    def _outside(self) -> re.Pattern[bytes]:
        return self._unquoted(rb'[^"]++', rb'"')

    @cached_property
    def _outside_for_spark(self) -> re.Pattern[bytes]:
        return self._unquoted(rb'(?:[^"\r]|\r\n|\r\Z)++', rb'(?<!\r)"', stray=not self.doubles_quotes)

    def _unquoted(self, text: bytes, closing: bytes, *, stray: bool = True) -> re.Pattern[bytes]:
        """Matches text outside quotes and whole quoted fields, up to the first quote that is not closed properly."""
        delimiter = re.escape(self._bytes)
        at_start = rb"(?:\A|(?<=[\r\n])|(?<=" + delimiter + rb"))"
        quoted = at_start + rb'"[^"]*+(?:""[^"]*+)*+' + closing + rb"(?=" + self._field_end.pattern + rb")"
        in_text = rb"(?!" + at_start + rb')"'
        return re.compile(rb"(?:" + rb"|".join([text, quoted, *([in_text] if stray else [])]) + rb")*+")


def _end(pattern: re.Pattern[bytes], block: bytes, start: int) -> int:
    match = pattern.match(block, start)
    return start if match is None else match.end()


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
