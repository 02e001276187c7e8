"""The document of `tallybook clean`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from tallybook.documents.base import Document, IfKnown

if TYPE_CHECKING:
    from tallybook.runs.clean import Leftover


class CleanedPlace(Document):
    """A place with files that nobody needs."""

    kind: Literal["logs", "scratch", "sandbox", "staging", "versions"]
    """What they are: a log of Spark, a folder of a replay that was killed, an output of a draft, a staging folder of a
    write that was killed, or files of old versions of a Delta table."""
    path: str
    """The file, folder or table."""
    files: int
    """The number of files that were removed, or would be."""
    bytes: int
    """Their size."""
    left: IfKnown[str] = None
    """Why files stay here."""


class Cleanup(Document):
    """What was removed, or would be."""

    dry_run: bool
    """True if nothing was removed."""
    older_than: str
    """The age of what is removed."""
    before: datetime
    """What was written since this time stays."""
    places: tuple[CleanedPlace, ...]
    """The places."""
    files: int
    """The number of files."""
    bytes: int
    """Their size."""

    @classmethod
    def of(cls, found: Iterable[Leftover], older_than: str, before: datetime, *, dry_run: bool) -> Cleanup:
        places = tuple(
            CleanedPlace(
                kind=leftover.kind,
                path=str(leftover.path),
                files=len(leftover.files),
                bytes=leftover.size,
                left=leftover.left,
            )
            for leftover in found
        )
        return cls(
            dry_run=dry_run,
            older_than=older_than,
            before=before,
            places=places,
            files=sum(place.files for place in places),
            bytes=sum(place.bytes for place in places),
        )
