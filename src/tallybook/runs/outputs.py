"""Reads back what an output wrote, with the types it was written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tallybook.model.columns import SYSTEM_COLUMNS, ColumnDef
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.model.run import Run
from tallybook.operations.publication import Mode, Publication
from tallybook.rows import sql
from tallybook.storage.read import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


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
