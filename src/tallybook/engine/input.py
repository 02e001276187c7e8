"""Loads the rows of a table for operations: applies the temporal filter, then adds the system columns."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tallybook.engine.context import RunContext
from tallybook.engine.tables import Tables
from tallybook.model.columns import DELETED, INTEGER, ROW_ID
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows import sql
from tallybook.rows.ids import POSITION, RowIds
from tallybook.rows.system import column_values, input_system_columns, is_active, rows_of_period, select_typed


def input_rows(
    source: SourceTable, schema: WorkingSchema, tables: Tables, context: RunContext, ids: RowIds
) -> tuple[DataFrame, frozenset[str]]:
    """Returns the working dataset before the first operation, with deleted rows, and the columns of the data."""
    frame = _current(source, tables, context)
    values = column_values(schema.business) | _system(frame, source, context, ids)
    return select_typed(frame, schema.columns, values), frozenset(frame.columns)


def other_rows(source: SourceTable, tables: Tables, context: RunContext, ids: RowIds) -> DataFrame:
    """Returns the rows of a joined, looked-up or appended table that are not deleted; with position and id if they are
    numbered."""
    frame = _current(source, tables, context)
    business = source.table.business_types
    values = column_values(business) | _system(frame, source, context, ids)
    columns = {**business, **source.table.system_types}
    if POSITION in frame.columns:
        columns[POSITION] = INTEGER
        values[POSITION] = sql.name(POSITION)
    else:
        del columns[ROW_ID]
    rows = select_typed(frame, columns, values)
    rows = rows.filter(is_active()) if DELETED in frame.columns else rows
    return rows.coalesce(1) if tables.is_small(source) else rows


def _current(source: SourceTable, tables: Tables, context: RunContext) -> DataFrame:
    return rows_of_period(tables.rows(source), source.table, tables.periods(source), context.as_of)


def _system(frame: DataFrame, source: SourceTable, context: RunContext, ids: RowIds) -> dict[str, str]:
    return input_system_columns(
        frame.columns,
        ids.of_rows(0),
        source.dataset.id,
        source.table.name,
        context.period.identifier,
        sql.timestamp(context.timestamp, sql.name(POSITION) if POSITION in frame.columns else None),
    )
