"""A batch: many runs that were asked for with one command, and how far each of them is."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from tallybook.model.base import Record
from tallybook.model.run import Owner
from tallybook.model.state import Json

ItemStatus = Literal["pending", "running", "completed", "failed", "cancelled", "skipped"]


class BatchItem(Record):
    """One run of a batch."""

    number: int
    """Its place in the order."""
    project_id: str
    """The project."""
    period: str
    """The period."""
    run_id: str | None = None
    """The run that was started last; null if it was refused or has not started."""
    status: ItemStatus = "pending"
    """How far it is."""
    reason: str | None = None
    """Why it failed or was skipped."""


class Batch(Record):
    """Many runs, in order."""

    id: str
    """The id of the batch."""
    created_at: datetime
    """When it was asked for."""
    options: Json
    """The options of its runs, as they were given."""
    owner: Owner
    """The process that executes it."""
    items: tuple[BatchItem, ...] = ()
    """The runs, in their order."""
