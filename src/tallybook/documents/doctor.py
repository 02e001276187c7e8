"""The document of `tallybook doctor`."""

from __future__ import annotations

from typing import Literal

from tallybook.documents.base import Document, IfKnown

FindingStatus = Literal["ok", "warning", "failed", "skipped"]


class FindingDocument(Document):
    """What a check found."""

    check: str
    """What was examined."""
    status: FindingStatus
    """`ok`; `warning`: it works, and something should be done; `failed`; or `skipped`."""
    message: str
    """What was found."""
    hint: IfKnown[str] = None
    """What to do."""
    duration_ms: int
    """How long the check took."""


class Examination(Document):
    """What is in order, and what is not."""

    findings: tuple[FindingDocument, ...]
    """What the checks found."""
    warnings: int
    """The number of warnings."""
    failed: int
    """The number of failures."""
