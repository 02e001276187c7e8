"""Files that cannot be read, in plain words: what is wrong with a damaged or foreign file."""

from __future__ import annotations

from pathlib import Path

from tallybook.errors import RunError, fail

_MAGIC = {"parquet": b"PAR1", "orc": b"ORC"}
_NAMES = {"parquet": "Parquet", "orc": "ORC"}
_ENCRYPTED = b"PARE"
_TAIL = 64
_HINT = "replace the file with a good copy, or remove it"


def unreadable(format: str, path: str) -> RunError:
    """The error for a local file whose footer cannot be read."""
    return fail("DataLoadError", f"{path} is not a readable {_NAMES[format]} file: {_fault(format, path)}", hint=_HINT)


def _fault(format: str, path: str) -> str:
    """What the first and last bytes of a file say about it."""
    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            first = file.read(_TAIL)
            file.seek(max(0, size - _TAIL))
            last = file.read()
    except OSError as error:
        return error.strerror or "it cannot be opened"
    magic = _MAGIC[format]
    if not size:
        return "it is empty"
    if format == "parquet" and (first.startswith(_ENCRYPTED) or last.endswith(_ENCRYPTED)):
        return "it is encrypted"
    if not first.startswith(magic):
        return "it contains text" if _is_text(first) else "it is a file of another kind"
    if format == "parquet" and not last.endswith(magic):
        return "its end is missing, so it was written or copied only in part"
    if format == "orc" and magic not in last:
        return "its end is missing, so it was written or copied only in part"
    return "its footer is damaged"


def _is_text(first: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in first)
