"""How an output is written, and what it wrote read back with the types it was written with."""

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
    """The sandbox holds the last try of a draft and nothing else, so there an output always replaces."""
    return "overwrite" if run.sandbox else output.mode


def read_output(spark: SparkSession, output: Publication, location: Location) -> DataFrame:
    """The written rows; system columns as far as they were written, and the position beside them."""
    columns = tuple(
        ColumnDef(name=name, type=type) for name, type in output.columns.items() if name not in SYSTEM_COLUMNS
    )
    return read(spark, location, Table.model_construct(name=output.name, columns=columns))


def first_rows(frame: DataFrame, columns: Sequence[str], count: int) -> list[Row]:
    """Rows to show. Dates and timestamps come as Spark's text: Python would tell timestamps in the zone of the machine,
    and knows no year before 1 or after 9999."""
    types = dict(frame.dtypes)
    values = {
        name: f"CAST({sql.name(name)} AS string)" if types[name] in ("date", "timestamp") else sql.name(name)
        for name in columns
    }
    return sql.select(frame, values).take(count)
