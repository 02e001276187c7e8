"""The system columns: what every row carries, and the one rule for which rows are active."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from tallybook.expressions.compile import spark_type
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
    VALIDITY_COLUMNS,
    ColumnType,
)


def is_active() -> Column:
    """Rows that are not deleted. `kept` has made a NULL that came with the data mean that."""
    return ~F.col(DELETED)


def selected(condition: Column | None) -> Column:
    """Active rows for which the condition is true. For filters and WHEN, where NULL counts as not selected."""
    return is_active() if condition is None else is_active() & condition


def null(type: ColumnType) -> Column:
    """A typed NULL."""
    return F.lit(None).cast(spark_type(type))


def kept(
    present: Collection[str], row_id: Column, dataset_id: str, table: str, period: str, timestamp: datetime
) -> dict[str, Column]:
    """System columns of input rows: what the source has is kept, the rest is filled in."""

    def own(name: str, default: Column) -> Column:
        return F.coalesce(F.col(name), default) if name in present else default

    return {
        ROW_ID: own(ROW_ID, row_id),
        SOURCE_DATASET_ID: F.lit(dataset_id),
        SOURCE_TABLE: F.lit(table),
        OPERATION_SEQ: F.lit(0).cast("bigint"),
        CREATED_AT: own(CREATED_AT, F.lit(timestamp)),
        UPDATED_AT: own(UPDATED_AT, F.lit(timestamp)),
        DELETED: own(DELETED, F.lit(False)),
        LABELS: own(LABELS, F.lit("")),
        PERIOD: own(PERIOD, F.lit(period)),
        **{name: F.col(name) for name in VALIDITY_COLUMNS if name in present},
    }


def fresh(
    seq: int, row_id: Column, dataset_id: str, table: str, period: Column, timestamp: datetime
) -> dict[str, Column]:
    """System columns of rows an operation makes."""
    return {
        ROW_ID: row_id,
        SOURCE_DATASET_ID: F.lit(dataset_id),
        SOURCE_TABLE: F.lit(table),
        OPERATION_SEQ: F.lit(seq).cast("bigint"),
        CREATED_AT: F.lit(timestamp),
        UPDATED_AT: F.lit(timestamp),
        DELETED: F.lit(False),
        LABELS: F.lit(""),
        PERIOD: period,
    }


def shaped(columns: Mapping[str, ColumnType], values: Mapping[str, Column | str]) -> list[Column | str]:
    """The one select that is a frame's contract: every column, in order, of its type; NULL where there is no value.

    A value that is a name is a column that is right as it stands; not spelling it out saves most of a wide select.
    """
    return [_shaped(name, type, values.get(name)) for name, type in columns.items()]


def _shaped(name: str, type: ColumnType, value: Column | str | None) -> Column | str:
    if isinstance(value, str):
        return value
    return null(type).alias(name) if value is None else value.cast(spark_type(type)).alias(name)


def untouched(columns: Iterable[str]) -> dict[str, Column | str]:
    """Columns as they are."""
    return {name: name for name in columns}
