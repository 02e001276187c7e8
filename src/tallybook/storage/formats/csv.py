"""CSV files."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import Problem
from tallybook.model.location import Location
from tallybook.rows.raising import raising
from tallybook.storage.credentials import reader
from tallybook.storage.files import file_options, list_files, path_of, reader_path
from tallybook.storage.formats.base import register
from tallybook.storage.formats.csv_layout import find_fault
from tallybook.storage.formats.csv_scan import csv_options, scan_csv
from tallybook.storage.formats.plain_files import EXACT_PATH, TEXT_OPTIONS, Options, PlainFiles
from tallybook.storage.scan import Field, Scan, quoted


class Csv(PlainFiles):
    """CSV: all values are text, in the dialect of the datasource's options."""

    type = "csv"
    row_hint = "each line needs as many fields as the header, or as the table has columns if there is no header"
    inexact = "a CSV file without a header"
    inexact_hint = "set has_header: true in the datasource, or write Parquet or Delta instead"

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        return scan_csv(spark, location, fields)

    def read_options(self, location: Location) -> Options:
        return csv_options(location)

    def write_options(self, location: Location) -> Options:
        """Returns options that keep the spaces of text, which Spark removes by default."""
        csv = file_options(location)
        return {
            **EXACT_PATH,
            **TEXT_OPTIONS,
            "sep": csv.delimiter,
            "header": csv.has_header,
            "nullValue": csv.null_value,
            "escape": '"',
            "ignoreLeadingWhiteSpace": False,
            "ignoreTrailingWhiteSpace": False,
        }

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        """Converts decimals to plain digits (Spark writes 0E-10), and writes a row whose only value is NULL as a quoted
        empty text, because readers skip empty lines. Without a header, a text in the first column that begins with a
        byte order mark fails the job, because readers drop the mark at the start of a file."""
        options = file_options(location)
        decimals = {field.name for field in frame.schema.fields if isinstance(field.dataType, T.DecimalType)}
        columns = {name: quoted(name).cast("string") if name in decimals else quoted(name) for name in frame.columns}
        if len(columns) == 1 and not options.null_value:
            columns = {name: F.coalesce(value.cast("string"), F.lit("")) for name, value in columns.items()}
        first = frame.schema.fields[0]
        if not options.has_header and isinstance(first.dataType, T.StringType):
            failure = raising("WriteFailed", column=first.name, value=quoted(first.name))
            marked = quoted(first.name).startswith("\ufeff")
            columns[first.name] = F.when(marked, failure).otherwise(columns[first.name])
        return frame.select(*(value.alias(name) for name, value in columns.items()))

    def same_columns(self, location: Location, existing: T.StructType, new: T.StructType) -> bool:
        """Files without a header have the same columns if they have as many."""
        return existing.names == new.names if file_options(location).has_header else len(existing) == len(new)

    def parser_fault(self, spark: SparkSession, location: Location, path: str) -> Problem | None:
        listed = list_files(reader(spark, location), reader_path(location))
        file = next((url for url in listed if path_of(url) == path), None)
        if file is None:
            return None
        fault = find_fault(spark, location, file)
        message = f"{path} has a line with far more fields than its header, or than the table has columns"
        return fault.problem if fault else Problem("DataLoadError", message, self.row_hint)


CSV = register(Csv())
