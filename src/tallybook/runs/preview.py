"""Reads back the first rows that a run wrote, to show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tallybook.model.columns import RESERVED, ROW_ID
from tallybook.model.run import OutputResult
from tallybook.rows.ids import POSITION
from tallybook.runs.outputs import first_rows, read_output, write_mode
from tallybook.runs.runner import RunResult
from tallybook.storage.write import written_by
from tallybook.text import padded, printable, width

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
