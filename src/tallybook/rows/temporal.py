"""The one temporal filter: which rows of a table belong to a run's period, or are valid at its as-of date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame

from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO
from tallybook.model.dataset import Table
from tallybook.rows import sql


def of_period(frame: DataFrame, table: Table, periods: Sequence[str], as_of: date) -> DataFrame:
    """The rows that count: of these periods, valid at the as-of date, or all, as the table's mode says."""
    if table.temporal_mode == "period":
        return frame.filter(f"{PERIOD} IN ({', '.join(map(sql.text, periods))})")
    if table.temporal_mode == "bitemporal":
        day = f"DATE '{as_of.isoformat()}'"
        return frame.filter(f"{VALID_FROM} <= {day} AND ({VALID_TO} IS NULL OR {VALID_TO} > {day})")
    return frame
