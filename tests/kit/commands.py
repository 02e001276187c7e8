"""Runs commands of the product in the process of the test, and keeps what they print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.documents.kit import read_document


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    args: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document that the command printed, checked against its schema."""
        assert self.err == "", "nothing beside the document"
        return read_document(self.args, self.code, self.out)


Tally = Callable[..., Said]
"""Runs a command in a workspace: `tally(books, "apply", "--dry-run")`."""
