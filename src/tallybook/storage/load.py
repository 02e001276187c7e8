"""A Spark reader for all files of a place or some of them, with the columns that are in folder names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.model.location import Location
from tallybook.storage.credentials import reader
from tallybook.storage.files import as_pattern, exactly, is_pattern


def load(
    spark: SparkSession,
    location: Location,
    columns: T.StructType,
    options: Mapping[str, str | bool],
    paths: Sequence[str] | None = None,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns the rows of a location, or of some of its files, and the columns that are in folder names (`year=2026/`).

    Those are read as text: Spark's guess would make 1 of `01`.
    """
    files = reader(spark, location).format(location.source.type).options(**options)
    places = [as_pattern(location)] if paths is None else [exactly(path) for path in paths]
    if paths is not None and not is_pattern(location):
        files = files.option("basePath", location.target)
    frame = files.schema(columns).load(places)
    partitions = tuple(name for name in frame.columns if name not in columns.names)
    if partitions:
        frame = files.schema(T.StructType([*columns.fields, *texts(partitions)])).load(places)
    return frame, partitions


def texts(names: Sequence[str]) -> list[T.StructField]:
    """Columns of text."""
    return [T.StructField(name, T.StringType()) for name in names]
