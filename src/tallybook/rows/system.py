"""The system columns of loaded rows, and the filters that read them: which rows are active, or of a period."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallybook.expressions.compile import cast
from tallybook.model.columns import (
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    PERIOD,
    ROW_ID,
    SOURCE_DATASET_ID,
    SOURCE_TABLE,
    UPDATED_AT,
    VALID_FROM,
    VALID_TO,
    VALIDITY_COLUMNS,
    ColumnType,
)
from tallybook.model.dataset import Table
from tallybook.rows import sql
from tallybook.rows.raising import raising_sql


def is_active() -> Column:
    """Returns a condition that is true for rows that are not deleted. `_deleted` is never NULL: `input_system_columns`
    replaces a NULL in the data with false."""
    return ~F.col(DELETED)


def rows_of_period(frame: DataFrame, table: Table, periods: Sequence[str], as_of: date | None) -> DataFrame:
    """Returns the rows of a table that a run reads: those of its periods, those valid at the as-of date, or all rows,
    depending on the table's temporal mode. Without an as-of date, rows of all dates."""
    if table.temporal_mode == "period":
        return frame.filter(f"{PERIOD} IN ({', '.join(map(sql.text, periods))})")
    if table.temporal_mode == "bitemporal" and as_of is not None:
        day = f"DATE '{as_of.isoformat()}'"
        return frame.filter(f"{VALID_FROM} <= {day} AND ({VALID_TO} IS NULL OR {VALID_TO} > {day})")
    return frame


def raise_outside(frame: DataFrame, periods: Sequence[str], seq: int) -> DataFrame:
    """Returns the frame of an output; a row of none of the periods fails the job. `seq` is that of the output."""
    names = ", ".join(map(sql.text, periods))
    failure = raising_sql("OutsidePeriod", seq=sql.text(str(seq)), period=PERIOD)
    values = column_values(frame.columns)
    return sql.select(frame, values | {PERIOD: f"CASE WHEN {PERIOD} IN ({names}) THEN {PERIOD} ELSE {failure} END"})


def null(type: ColumnType) -> Column:
    """Returns a typed NULL."""
    return cast(F.lit(None), type)


def input_system_columns(
    present: Collection[str], row_id: str, dataset_id: str, table: str, period: str, timestamp: str
) -> dict[str, str]:
    """Returns the system columns of input rows as SQL: those in the data are kept, the others are filled in."""

    def own(column: str, default: str) -> str:
        return f"coalesce({column}, {default})" if column in present else default

    return {
        ROW_ID: own(ROW_ID, row_id),
        SOURCE_DATASET_ID: sql.text(dataset_id),
        SOURCE_TABLE: sql.text(table),
        OPERATION_SEQ: "0",
        CREATED_AT: own(CREATED_AT, timestamp),
        UPDATED_AT: own(UPDATED_AT, timestamp),
        DELETED: own(DELETED, "false"),
        LABELS: own(LABELS, "''"),
        PERIOD: own(PERIOD, sql.text(period)),
        **{name: name for name in VALIDITY_COLUMNS if name in present},
    }


def select_typed(frame: DataFrame, columns: Mapping[str, ColumnType], values: Mapping[str, str]) -> DataFrame:
    """Selects every column, in order and with its type; NULL if it has no value. Every frame is made by this select.

    Values are SQL text. A value that is the column's own name needs no cast.
    """
    return sql.select(frame, {name: _typed(name, type, values.get(name, sql.NULL)) for name, type in columns.items()})


def _typed(name: str, type: ColumnType, value: str) -> str:
    return value if value == sql.name(name) else sql.typed(value, type)


def column_values(columns: Iterable[str]) -> dict[str, str]:
    """Returns SQL that reads each column unchanged."""
    return {name: sql.name(name) for name in columns}


def select_columns(frame: DataFrame, columns: Iterable[str]) -> DataFrame:
    """Returns the frame with these columns, in this order."""
    return frame.selectExpr(*map(sql.name, columns))
