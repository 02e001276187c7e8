"""JSON files with one object on each line."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from tallybook.model.location import Location
from tallybook.storage.formats.base import register
from tallybook.storage.formats.json_scan import JSON_OPTIONS, scan_json
from tallybook.storage.formats.plain_files import EXACT_PATH, TEXT_OPTIONS, Options, PlainFiles
from tallybook.storage.scan import Field, Scan


class Json(PlainFiles):
    """JSON: a line is a row, and its keys are the columns."""

    type = "json"
    names_columns = True
    row_hint = "each line must be one JSON object"

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        return scan_json(spark, location, fields)

    def read_options(self, location: Location) -> Options:
        return JSON_OPTIONS

    def write_options(self, location: Location) -> Options:
        """NULLs are written, so that each row names every column."""
        return {**EXACT_PATH, **TEXT_OPTIONS, "ignoreNullFields": False}


JSON = register(Json())
