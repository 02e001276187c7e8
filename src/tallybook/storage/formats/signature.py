"""How the data files of a columnar format are recognised, and what is wrong with a file that cannot be read."""

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
    """What the files of a columnar format begin and end with."""

    name: str
    """The format as messages name it."""
    suffix: str
    magic: bytes
    """The first bytes of a file."""
    is_end: Callable[[bytes], bool]
    """True if the last bytes of a file are those of a whole one."""
    read: Callable[[Path], None]
    """Reads a file to its end with PyArrow, which raises an error if the file is damaged."""
    encrypted: bytes | None = None
    """What an encrypted file begins or ends with."""

    def fault(self, path: str) -> str:
        """Says what the first and last bytes of a file show."""
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
            return "it contains text" if _is_text(first) else "it is a file of another kind"
        if not self.is_end(last):
            return "its end is missing, so it was written or copied only in part"
        return _BAD_FOOTER


def unreadable(signature: Signature, path: str) -> RunError:
    """The error for a file whose footer cannot be read."""
    message = f"{path} is not a readable {signature.name} file: {signature.fault(path)}"
    return fail("DataLoadError", message, hint=_HINT)


def damaged(signature: Signature | None, path: str) -> Problem:
    """The problem of a file that could not be read to its end; without a signature the reason is not known."""
    reason = signature.fault(path) if signature and Path(path).is_file() else ""
    known = "" if reason in ("", _BAD_FOOTER) else f": {reason}"
    return Problem("DataLoadError", f"{path} is damaged and cannot be read{known}", _HINT)


def _is_text(first: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in first)
