"""The system columns: what every row carries, and the one rule for which rows are active."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

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
    VALIDITY_COLUMNS,
    ColumnType,
)
from tallybook.rows import sql


def is_active() -> Column:
    """Rows that are not deleted. `input_system_columns` has made a NULL that came with the data mean that."""
    return ~F.col(DELETED)


def selected(condition: Column | None) -> Column:
    """Active rows for which the condition is true. For filters and WHEN, where NULL counts as not selected."""
    return is_active() if condition is None else is_active() & condition


def null(type: ColumnType) -> Column:
    """A typed NULL."""
    return cast(F.lit(None), type)


def input_system_columns(
    present: Collection[str], row_id: str, dataset_id: str, table: str, period: str, moment: str
) -> dict[str, str]:
    """System columns of input rows: what the source has is kept, the rest is filled in."""

    def own(column: str, default: str) -> str:
        return f"coalesce({column}, {default})" if column in present else default

    return {
        ROW_ID: own(ROW_ID, row_id),
        SOURCE_DATASET_ID: sql.text(dataset_id),
        SOURCE_TABLE: sql.text(table),
        OPERATION_SEQ: "0",
        CREATED_AT: own(CREATED_AT, moment),
        UPDATED_AT: own(UPDATED_AT, moment),
        DELETED: own(DELETED, "false"),
        LABELS: own(LABELS, "''"),
        PERIOD: own(PERIOD, sql.text(period)),
        **{name: name for name in VALIDITY_COLUMNS if name in present},
    }


def new_system_columns(seq: int, row_id: str, dataset_id: str, table: str, period: str, moment: str) -> dict[str, str]:
    """System columns of rows an operation makes."""
    made = input_system_columns((), row_id, dataset_id, table, "", moment)
    return made | {OPERATION_SEQ: str(seq), PERIOD: period}


def select_typed(frame: DataFrame, columns: Mapping[str, ColumnType], values: Mapping[str, str]) -> DataFrame:
    """The one select that is a frame's contract: every column, in order, of its type; NULL where there is no value.

    Values are SQL text; one that is the column's own name is right as it stands.
    """
    return sql.select(frame, {name: _typed(name, type, values.get(name, sql.NULL)) for name, type in columns.items()})


def _typed(name: str, type: ColumnType, value: str) -> str:
    return value if value == sql.name(name) else sql.typed(value, type)


def added(frame: DataFrame, rows: DataFrame, columns: Mapping[str, ColumnType], values: Mapping[str, str]) -> DataFrame:
    """The frame and, below it, rows with these values; NULL on either side where a column is the other's alone."""
    made = {name: type for name, type in columns.items() if name in values}
    return frame.unionByName(select_typed(rows, made, values), allowMissingColumns=True)


def untouched(columns: Iterable[str]) -> dict[str, str]:
    """Columns as they are."""
    return {name: sql.name(name) for name in columns}


def select_columns(frame: DataFrame, columns: Iterable[str]) -> DataFrame:
    """The frame with these columns, in this order."""
    return frame.selectExpr(*map(sql.name, columns))
