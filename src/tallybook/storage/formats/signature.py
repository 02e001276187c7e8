"""Recognises the data files of a columnar format, and explains what is wrong with a file that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tallybook.errors import Problem, RunError, fail

_ENDS = 64
_HINT = "replace the file with a good copy, or remove it"
_BAD_FOOTER = "its footer is damaged"


@dataclass(frozen=True)
class Signature:
    """The first and last bytes of the files of a columnar format."""

    name: str
    """The name of the format in messages."""
    suffix: str
    magic: bytes
    """The first bytes of a file."""
    is_end: Callable[[bytes], bool]
    """True if the last bytes of a file are those of a complete file."""
    read: Callable[[Path], None]
    """Reads a file to its end with PyArrow, which raises an error if the file is damaged."""
    encrypted: bytes | None = None
    """The first or last bytes of an encrypted file."""

    def fault(self, path: str) -> str:
        """Describes what is wrong with a file, by its first and last bytes."""
        try:
            size = Path(path).stat().st_size
            with Path(path).open("rb") as file:
                first = file.read(_ENDS)
                file.seek(max(0, size - _ENDS))
                last = file.read()
        except OSError as error:
            return error.strerror or "it cannot be opened"
        if not size:
            return "it is empty"
        if self.encrypted and (first.startswith(self.encrypted) or last.endswith(self.encrypted)):
            return "it is encrypted"
        if not first.startswith(self.magic):
            return "it contains text" if _is_text(first) else "it is a file of another format"
        if not self.is_end(last):
            return "its end is missing; it was written or copied only in part"
        return _BAD_FOOTER


def unreadable(signature: Signature, path: str) -> RunError:
    """Returns the error for a file whose footer cannot be read."""
    message = f"{path} is not a readable {signature.name} file: {signature.fault(path)}"
    return fail("DataLoadError", message, hint=_HINT)


def damaged(signature: Signature | None, path: str) -> Problem:
    """Returns the problem of a file that could not be read to its end. Without a signature it has no reason."""
    reason = signature.fault(path) if signature and Path(path).is_file() else ""
    shown = "" if reason in ("", _BAD_FOOTER) else f": {reason}"
    return Problem("DataLoadError", f"{path} is damaged and cannot be read{shown}", f"{_HINT}{_checksum_hint(path)}")


def _checksum_hint(path: str) -> str:
    """Returns what else helps if Spark has written checksums next to the file: it refuses a file that other programs
    have changed since."""
    checksums = Path(path).with_name(f".{Path(path).name}.crc")
    if not checksums.is_file():
        return ""
    return f"; if another program has changed it on purpose, remove {checksums.name}, which has its old checksums"


def _is_text(first: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in first)
