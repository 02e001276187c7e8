"""Reads files with Spark, all of a location or some of them, with the columns in their folder names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.credentials import reader
from tallybook.storage.files import escape_pattern, is_pattern, reader_path

_FILE_OF_VALUES = sql.internal("file of values")


def load(
    spark: SparkSession,
    location: Location,
    format: str,
    columns: T.StructType,
    options: Mapping[str, str | bool],
    paths: Sequence[str] | None = None,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns the rows of a location, or of some of its files, and the columns in folder names (`year=2026/`).

    `format` is Spark's name of the format. Columns in folder names are read as text, because Spark would read `01` as
    1.
    """
    files = reader(spark, location).format(format).options(**options)
    targets = [reader_path(location)] if paths is None else [escape_pattern(path) for path in paths]
    if paths is not None and not is_pattern(location):
        files = files.option("basePath", location.target)
    frame = files.schema(columns).load(targets)
    partitions = tuple(name for name in frame.columns if name not in columns.names)
    if partitions:
        frame = files.schema(T.StructType([*columns.fields, *texts(partitions)])).load(targets)
    return frame, partitions


def with_folder_values(
    spark: SparkSession, frame: DataFrame, file: str, names: Sequence[str], values: Mapping[str, Mapping[str, Any]]
) -> DataFrame:
    """Adds text columns that have one value for each file, such as those in its folder names.

    `file` is SQL for the url of a row's file, `values` has the columns of each url.
    """
    rows = [
        (url, *(None if of_file[name] is None else str(of_file[name]) for name in names))
        for url, of_file in values.items()
    ]
    values_of_files = F.broadcast(spark.createDataFrame(rows, T.StructType(texts([_FILE_OF_VALUES, *names]))))
    return frame.join(values_of_files, F.expr(f"{file} = {sql.name(_FILE_OF_VALUES)}"), "left")


def broken_row(broken: str, column: str) -> str:
    """Returns SQL for the text of a row that Spark's reader for CSV or JSON could not parse; NULL for good rows.

    It reads `column`, a column of the file, because Spark refuses a query that reads broken rows and no other column of
    the file, such as a query for values in folder names.
    """
    return f"nvl2({sql.name(broken)}, concat({sql.name(broken)}, left(coalesce({sql.name(column)}, ''), 0)), NULL)"


def check_names(location: Location, names: Sequence[str]) -> None:
    """Raises SchemaMismatch for columns whose names differ only by case, which Spark cannot tell apart."""
    alike = next(([a, b] for a, b in combinations(names, 2) if a != b and a.lower() == b.lower()), None)
    if alike is not None:
        message = (
            f"{location} has columns that differ only by case, which Spark cannot read together: {', '.join(alike)}"
        )
        raise fail("SchemaMismatch", message, hint="rename one of them")


def texts(names: Sequence[str]) -> list[T.StructField]:
    """Returns text columns with these names."""
    return [T.StructField(name, T.StringType()) for name in names]
