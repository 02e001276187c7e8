"""CSV by RFC 4180 and the rules of the documentation: a state machine over characters."""

from __future__ import annotations

from .verdict import MalformedError

BYTE_ORDER_MARK = "\ufeff"


def records(text: str, delimiter: str) -> list[list[str]]:
    """The records of a file without its blank lines.

    LF, CRLF and CR end a line outside of quotes and are text inside them. White space may follow a closing quote. A
    quote inside of a field that does not begin with one is text.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    lines: list[list[str]] = []
    at = 0
    while at < len(text):
        record: list[str] = []
        start = at
        while True:
            field, at = _field(text, at, delimiter)
            record.append(field)
            if not text.startswith(delimiter, at):
                break
            at += len(delimiter)
        blank = at == start
        at = _after_line_end(text, at)
        if not blank:
            lines.append(record)
    return lines


def _field(text: str, at: int, delimiter: str) -> tuple[str, int]:
    """The field that begins at an index, and the index after it."""
    if text.startswith('"', at):
        return _quoted(text, at + 1, delimiter)
    start = at
    while at < len(text) and text[at] not in "\r\n" and not text.startswith(delimiter, at):
        at += 1
    return text[start:at], at


def _quoted(text: str, at: int, delimiter: str) -> tuple[str, int]:
    value = ""
    while at < len(text):
        if text[at] != '"':
            value += text[at]
            at += 1
        elif text.startswith('""', at):
            value += '"'
            at += 2
        else:
            return value, _after_quote(text, at + 1, delimiter)
    raise MalformedError("DataLoadError", "a quote that is not closed")


def _after_quote(text: str, at: int, delimiter: str) -> int:
    while at < len(text) and text[at] not in "\r\n" and not text.startswith(delimiter, at):
        if text[at] > " ":
            raise MalformedError("DataLoadError", "text after a closing quote", repr(text[at : at + 5]))
        at += 1
    return at


def _after_line_end(text: str, at: int) -> int:
    return at + 2 if text.startswith("\r\n", at) else at + 1
