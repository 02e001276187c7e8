"""Reads back what an output wrote, with the types it was written with, and shows its first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tallybook.model.columns import RESERVED, ROW_ID, SYSTEM_COLUMNS, ColumnDef
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.model.run import OutputResult, Run
from tallybook.operations.publication import Mode, Publication
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.storage.read import read
from tallybook.storage.write import written_by
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from tallybook.runs.runner import RunResult


def write_mode(output: Publication, run: Run) -> Mode:
    """Returns the mode of an output. In the sandbox it always replaces: only the last run of a draft is kept there."""
    return "overwrite" if run.sandbox else output.mode


def read_output(spark: SparkSession, output: Publication, location: Location) -> DataFrame:
    """Returns the rows that an output wrote, with their positions and the system columns that were written."""
    columns = tuple(
        ColumnDef(name=name, type=type) for name, type in output.columns.items() if name not in SYSTEM_COLUMNS
    )
    return read(spark, location, Table.model_construct(name=output.name, columns=columns))


def first_rows(frame: DataFrame, columns: Sequence[str], count: int) -> list[Row]:
    """Returns rows to show. Spark turns dates and timestamps into text: Python would show timestamps in the time zone
    of the machine, and has no year before 1 or after 9999."""
    types = dict(frame.dtypes)
    values = {
        name: f"CAST({sql.name(name)} AS string)" if types[name] in ("date", "timestamp") else sql.name(name)
        for name in columns
    }
    return sql.select(frame, values).take(count)


def output_rows(spark: SparkSession, result: RunResult, output: OutputResult, count: int) -> list[str]:
    """Returns a table of text: the business columns of the first rows, in the order of their ids, else of the file."""
    published = next(published for published in result.plan.outputs if published.seq == output.seq)
    shown = [name for name in published.columns if name not in RESERVED] or list(published.columns)
    location = replace(result.plan.destinations[output.seq], version=output.delta_version)
    if write_mode(published, result.run) == "append":
        location = written_by(location, result.run.id, output.seq)
    frame = read_output(spark, published, location)
    order = ROW_ID if ROW_ID in frame.columns else POSITION
    rows = first_rows(frame.orderBy(order), shown, count)
    return text_table(shown, [[_cell(value) for value in row] for row in rows])


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table, each column as wide as its longest cell."""
    shown = [[printable(cell) for cell in cells] for cells in (header, *rows)]
    widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
    first, *others = ("  ".join(map(padded, cells, widths)).rstrip() for cells in shown)
    return [first, "  ".join("─" * columns for columns in widths), *others]
