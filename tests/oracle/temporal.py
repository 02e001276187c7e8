"""Which rows of a table belong to a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from tallybook.model.dataset import Table

from .expressions import Row


def of_run(rows: Iterable[Row], table: Table, period: str, as_of: date) -> list[Row]:
    if table.temporal_mode == "period":
        return [row for row in rows if row["_period"] == period]
    if table.temporal_mode == "bitemporal":
        return [row for row in rows if _valid(row["_valid_from"], row["_valid_to"], as_of)]
    return list(rows)


def _valid(start: object, end: object, as_of: date) -> bool:
    """Both bounds are dates. A row without a beginning is never valid, one without an end is valid from then on."""
    return isinstance(start, date) and start <= as_of and (end is None or (isinstance(end, date) and end > as_of))
