"""The one temporal filter: which rows of a table belong to a run's period, or are valid at its as-of date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO
from tallybook.model.dataset import Table


def of_period(frame: DataFrame, table: Table, periods: Sequence[str], as_of: date) -> DataFrame:
    """The rows that count: of these periods, valid at the as-of date, or all, as the table's mode says."""
    if table.temporal_mode == "period":
        return frame.filter(F.col(PERIOD).isin(*periods))
    if table.temporal_mode == "bitemporal":
        begun = F.col(VALID_FROM) <= F.lit(as_of)
        not_ended = F.col(VALID_TO).isNull() | (F.col(VALID_TO) > F.lit(as_of))
        return frame.filter(begun & not_ended)
    return frame
