"""Which rows of a table belong to a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from tallybook.model.dataset import Table

from .expressions import Row


def of_run(rows: Iterable[Row], table: Table, periods: Sequence[str], as_of: date) -> list[Row]:
    """The rows of some periods, or valid on a date; rows of all dates if the date is the first there is."""
    if table.temporal_mode == "period":
        return [row for row in rows if row["_period"] in periods]
    if table.temporal_mode == "bitemporal" and as_of != date.min:
        return [row for row in rows if is_valid(row, as_of)]
    return list(rows)


def is_valid(row: Row, as_of: date) -> bool:
    """Both bounds are dates. A row without a beginning is never valid, one without an end is valid from then on."""
    start, end = row["_valid_from"], row["_valid_to"]
    return isinstance(start, date) and start <= as_of and (end is None or (isinstance(end, date) and end > as_of))
