"""The first rows of what a run wrote, read back from where it wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tallybook.engine.plan import Plan
from tallybook.model.columns import RESERVED, ROW_ID
from tallybook.operations.output import OutputStep
from tallybook.rows.ids import POSITION
from tallybook.runs.outputs import read_output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def output_rows(spark: SparkSession, plan: Plan, seq: int, count: int) -> list[str]:
    """A table of text: the business columns of the first rows, in the order of their ids or as they lie."""
    step = next(step for step in plan.steps if isinstance(step, OutputStep) and step.seq == seq)
    shown = [name for name in step.columns if name not in RESERVED] or list(step.columns)
    frame = read_output(spark, step, plan.destinations[seq])
    order = ROW_ID if ROW_ID in frame.columns else POSITION
    rows = frame.orderBy(order).select(*(f"`{name}`" for name in shown)).take(count)
    return text_table(shown, [[_cell(value) for value in row] for row in rows])


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as they need to be."""
    widths = [max(len(cells[i]) for cells in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *(line(row) for row in rows)]
