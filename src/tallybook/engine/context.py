"""The constants of a run: they do not change during the run, nor in a replay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from tallybook.model.period import Period


@dataclass(frozen=True)
class RunContext:
    """The constants of one run."""

    run_id: str
    period: Period
    as_of: date
    timestamp: datetime
    epoch_ms: int
    """A number no other run of the store has: the time part of the ids of its rows."""
