"""ORC files."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.model.location import Location
from tallybook.storage.formats.base import register
from tallybook.storage.formats.column_reading import ColumnReading, FileReading
from tallybook.storage.formats.columnar import ColumnarFiles
from tallybook.storage.formats.orc_footer import SIGNATURE, check_time_zone, exact_in_orc, orc_reading, remote_reading


class Orc(ColumnarFiles):
    """ORC: Spark has no row index for it, and reads timestamps in the time zone of Java."""

    type = "orc"
    signature = SIGNATURE
    inexact = "an ORC file"

    def local_reading(self, path: str, wanted: Iterable[str]) -> FileReading:
        return orc_reading(path, wanted)

    def remote_reading(self, type: T.DataType, name: str) -> ColumnReading:
        return remote_reading(type, name)

    def check_types(self, spark: SparkSession, location: Location, types: Iterable[T.DataType]) -> None:
        if any(isinstance(type, T.TimestampType) for type in types):
            check_time_zone(spark, "DataLoadError", f"{location} cannot be read")

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        if any(isinstance(field.dataType, T.TimestampType) for field in frame.schema.fields):
            check_time_zone(spark, "WriteFailed", f"{location} cannot be written")
        return exact_in_orc(frame)


ORC = register(Orc())
