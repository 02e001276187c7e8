"""The text of CSV files on this machine, from and to the encoding of a datasource.

What inspects files works on text in UTF-8. Spark writes UTF-8 too, and a staged file is encoded before it is published.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from tallybook.errors import fail
from tallybook.model.encoding import Encoding

BOM = "\ufeff"
BLOCK = 16 * 2**20
_LONGEST_MARK = 3


def text_blocks(path: str, encoding: Encoding, size: int = BLOCK) -> Iterator[bytes]:
    """Returns the text of a file in UTF-8, in blocks of whole lines and without a byte order mark."""
    try:
        with Path(path).open("rb") as file:
            _check_mark(path, encoding, file.read(_LONGEST_MARK))
        yield from (_wide_blocks if encoding.is_unicode and not encoding.is_utf_8 else _blocks)(path, encoding, size)
    except OSError as error:
        raise fail("DataLoadError", f"{path} cannot be read: {error.strerror}") from error


def encode_file(path: Path, encoding: Encoding, *, mark: bool) -> None:
    """Encodes a staged file in UTF-8 anew. The copy has a name of Spark's, so that it is removed after a crash."""
    copy = path.rename(path.with_name(f"part-0-{path.name}"))
    with copy.open(encoding="utf-8", newline="") as text, path.open("wb") as encoded:
        encoded.write(encoding.mark if mark or encoding.needs_mark else b"")
        while block := text.read(BLOCK):
            encoded.write(block.encode(encoding.written_as))
    copy.unlink()


def _check_mark(path: str, encoding: Encoding, first: bytes) -> None:
    """Raises DataLoadError if the first bytes of a file do not fit its encoding."""
    other = encoding.foreign_mark(first)
    if other is not None:
        hint = f"set `encoding: {other}` in the options of the datasource, or save the file as {encoding.label}"
        raise fail("DataLoadError", f"{path} is encoded in {other.upper()}, not in {encoding.label}", hint=hint)
    if encoding.needs_mark and first and not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        hint = "set `encoding: utf-16le` or `encoding: utf-16be`, whichever the file has"
        raise fail("DataLoadError", f"{path} does not begin with the byte order mark of UTF-16", hint=hint)


def _blocks(path: str, encoding: Encoding, size: int) -> Iterator[bytes]:
    lines = 0
    with Path(path).open("rb") as file:
        block = (file.read(size) + file.readline()).removeprefix(BOM.encode())
        while True:
            yield block if encoding.is_utf_8 else _decoded(path, encoding, block, lines).encode()
            lines += 0 if encoding.is_utf_8 else block.count(b"\n")
            block = file.read(size)
            if not block:
                return
            block += file.readline()


def _decoded(path: str, encoding: Encoding, block: bytes, lines_before: int) -> str:
    try:
        return block.decode(encoding.name)
    except UnicodeDecodeError as error:
        line = lines_before + block.count(b"\n", 0, error.start) + 1
        message = f"{path} line {line} has the byte 0x{block[error.start]:02x}, which {encoding.label} does not have"
        raise fail("DataLoadError", message, hint=_OTHER) from error


def _wide_blocks(path: str, encoding: Encoding, size: int) -> Iterator[bytes]:
    try:
        with Path(path).open(encoding=encoding.name, newline="\n") as file:
            yield (file.read(size) + file.readline()).removeprefix(BOM).encode()
            while block := file.read(size):
                yield (block + file.readline()).encode()
    except UnicodeDecodeError as error:
        raise fail("DataLoadError", f"{path} is not text in {encoding.label}: {error.reason}", hint=_OTHER) from error


_OTHER = "set the `encoding` that the file has in the options of the datasource"
