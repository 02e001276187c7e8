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

from tallybook.model.datasource import FormatOptions
from tallybook.model.encoding import UTF_8, Encoding, encoding_of

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
    """CSV with a delimiter of one or more characters, and a quote of one ASCII character.

    Its patterns for bytes are for text in UTF-8, whatever encoding the files have.
    """

    delimiter: str
    quote: str = '"'
    encoding: Encoding = UTF_8

    @classmethod
    def of(cls, options: FormatOptions) -> Dialect:
        """Returns the dialect of a datasource's options; a tab may be written as `\\t`."""
        delimiter = "\t" if options.delimiter == r"\t" else options.delimiter
        encoding = encoding_of(options.encoding)
        assert encoding is not None, "the checker refuses other encodings"
        return cls(delimiter, options.quote, encoding)

    @property
    def spark_delimiter(self) -> str:
        """The delimiter as an option of Spark, which takes a backslash for the beginning of an escape, and reads the
        bytes of a code page as those of ISO-8859-1."""
        read = self.delimiter
        if not self.encoding.is_unicode:
            read = read.encode(self.encoding.name, errors="replace").decode(self.encoding.java)
        return read.replace("\\", "\\\\")

    @property
    def doubles_quotes(self) -> bool:
        """True if Spark's parser may double a quote in an unquoted field: its parser for long delimiters does."""
        return len(self.delimiter) > 1

    @property
    def records(self) -> str:
        """A pattern in Java's syntax that finds all records of a text, also those with faults, but not blank lines.

        Possessive quantifiers keep Java from recursing into each character.
        """
        q = self._quote
        return rf"(?:(?<=^|[\r\n]|{self._escaped}){q}{self._quoted_text}(?:{q}|\z)|[^\r\n{q}]++|{q})++"

    @property
    def next_field(self) -> str:
        """A pattern in Java's syntax for a delimiter and a field without faults, which is its group 1."""
        q = self._quote
        quoted = f"{q}{self._quoted_text}{q}{self._padding}"
        return rf"{self._escaped}({quoted}|(?!{q})(?:(?!{self._escaped})[^\r\n])*+)"

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
            fields.append(field[2] if field[1] is None else field[1].replace(self.quote * 2, self.quote))
            if not text.startswith(self.delimiter, field.end()):
                break
            at = field.end() + len(self.delimiter)
        return tuple(fields), text[:start]

    def last_quote(self, lines: bytes) -> Quote | None:
        """Returns the state after the last quote of whole lines; None if every quote is doubled, or there is none.

        A quote that opens a field follows a delimiter or a line end. A quote that closes a field precedes one.
        """
        end = len(lines)
        quote = self.quote.encode()
        while (last := lines.rfind(quote, 0, end)) >= 0:
            first = last
            while first and lines[first - 1] == quote[0]:
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
                at = _end(self._inside, block, 0)
                if at == len(block):
                    line += _line_ends(block)
                    continue
                if not self._field_end.match(block, at + 1) or (for_spark and block[:at].endswith(b"\r")):
                    return Fault(line + _line_ends(block[:at]), unclosed=False)
                at, opened = at + 1, 0
            at = _end(outside, block, at)
            if at < len(block):
                closing = _end(self._inside, block, at + 1)
                if block[at] != ord(self.quote) or closing < len(block):
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
    def _quote(self) -> str:
        """The quote in a pattern, inside and outside of brackets."""
        return rf"\x{ord(self.quote):02x}"

    @cached_property
    def _quoted_text(self) -> str:
        return f"[^{self._quote}]*+(?:{self._quote}{{2}}[^{self._quote}]*+)*+"

    @cached_property
    def _inside(self) -> re.Pattern[bytes]:
        return re.compile(self._quoted_text.encode())

    @cached_property
    def _padding(self) -> str:
        return "[" + "".join(f"\\x{ord(letter):02x}" for letter in self.padding) + "]*+"

    @cached_property
    def _field(self) -> re.Pattern[str]:
        end = rf"(?={self._escaped}|[\r\n]|\Z)"
        q = self._quote
        unquoted = rf"((?!{q})(?:(?!{self._escaped})[^\r\n])*+)"
        return re.compile(rf"{q}((?:[^{q}]|{q}{q})*+){q}{self._padding}{end}|{unquoted}")

    @cached_property
    def _field_start(self) -> re.Pattern[bytes]:
        """Matches at the end of a text if a field can start there."""
        return re.compile(rb"(?:\A|[\r\n]|" + re.escape(self._bytes) + rb")\Z")

    @cached_property
    def _field_end(self) -> re.Pattern[bytes]:
        return re.compile(self._padding.encode() + rb"(?:[\r\n]|\Z|" + re.escape(self._bytes) + rb")")

    @cached_property
    def _outside(self) -> re.Pattern[bytes]:
        q = self._quote.encode()
        return self._unquoted(rb"[^" + q + rb"]++", q)

    @cached_property
    def _outside_for_spark(self) -> re.Pattern[bytes]:
        q = self._quote.encode()
        text = rb"(?:[^" + q + rb"\r]|\r\n|\r\Z)++"
        return self._unquoted(text, rb"(?<!\r)" + q, stray=not self.doubles_quotes)

    def _unquoted(self, text: bytes, closing: bytes, *, stray: bool = True) -> re.Pattern[bytes]:
        """Matches text outside quotes and whole quoted fields, up to the first quote that is not closed properly."""
        delimiter = re.escape(self._bytes)
        at_start = rb"(?:\A|(?<=[\r\n])|(?<=" + delimiter + rb"))"
        q = self._quote.encode()
        quoted = at_start + q + self._inside.pattern + closing + rb"(?=" + self._field_end.pattern + rb")"
        in_text = rb"(?!" + at_start + rb")" + q
        return re.compile(rb"(?:" + rb"|".join([text, quoted, *([in_text] if stray else [])]) + rb")*+")


def _end(pattern: re.Pattern[bytes], block: bytes, start: int) -> int:
    match = pattern.match(block, start)
    return start if match is None else match.end()


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
