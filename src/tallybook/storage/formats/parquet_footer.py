"""Reads what a Parquet file states about its columns: their types, the calendar of dates, the digits of timestamps.

The schema that Spark writes into a footer is not used, because tools that change a file copy it unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.rows import sql
from tallybook.storage.formats.column_reading import (
    GREGORIAN_DAY,
    UNKNOWN_CALENDAR,
    ColumnReading,
    FileReading,
    UnreadableType,
    first_doubt,
    out_of_years,
    timestamp_literal,
    wanted_columns,
)
from tallybook.storage.formats.signature import Signature, unreadable

_DAYS = -719162, 2932896
"""0001-01-01 and 9999-12-31 in days since 1970."""
_DAY_1900 = -25567
_TICKS_OF_DAY = {"milliseconds": 86_400_000, "microseconds": 86_400_000_000}
_UNKNOWN_CLOCK = "the file does not say which calendar and time zone it uses for times before 1900"
_SIGNED = {8: T.ByteType(), 16: T.ShortType(), 32: T.IntegerType(), 64: T.LongType()}
_UNSIGNED = {8: T.ShortType(), 16: T.IntegerType(), 32: T.LongType(), 64: T.DecimalType(20, 0)}
_WITHOUT_ANNOTATION: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "INT32": T.IntegerType(),
    "INT64": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
}
_TEXT = ("STRING", "ENUM", "JSON")
_MAGIC = b"PAR1"


def _read(file: Path) -> None:
    for _ in pq.ParquetFile(file).iter_batches():
        pass


SIGNATURE = Signature("Parquet", ".parquet", _MAGIC, lambda last: last.endswith(_MAGIC), _read, encrypted=b"PARE")


def parquet_reading(path: str, wanted: Iterable[str]) -> FileReading:
    """Returns how to read the wanted columns of a local file. Raises DataLoadError if its footer cannot be read."""
    try:
        footer = pq.read_metadata(path)
        fields = {field.name: str(field.type) for field in footer.schema.to_arrow_schema()}
        names = footer.schema.to_arrow_schema().names
    except (pa.ArrowException, OSError) as error:
        raise unreadable(SIGNATURE, path) from error
    leaves = [footer.schema.column(index) for index in range(footer.num_columns)]
    plain = {leaf.path: index for index, leaf in enumerate(leaves) if leaf.path == leaf.name}
    writer = _Writer.of(footer)
    columns = {
        name: _Column(path, footer, plain[name], writer).reading
        if name in plain
        else ColumnReading(UnreadableType(fields[name].partition("<")[0]))
        for name in wanted_columns(path, names, wanted)
    }
    return FileReading(tuple(columns.items()), writer.options, frozenset(names))


@dataclass(frozen=True)
class _Writer:
    """What a footer states about old dates and times.

    Spark before version 3 and old versions of Hive used the Julian calendar for days before 1582-10-15. Spark reads its
    own files correctly, because they state the calendar. Files of other Java programs may not state it.
    """

    knows_days: bool
    """True if the calendar of dates is known."""
    knows_times: bool
    """True if the calendar and the clock of timestamps are known."""
    in_spark: bool
    """True if Spark wrote the file, so that its timestamps have no digits beyond microseconds."""
    julian: bool = False
    """True if Spark needs an option for Julian dates; in its own files it finds that out by itself."""

    @classmethod
    def of(cls, footer: pq.FileMetaData) -> _Writer:
        metadata = footer.metadata or {}
        in_java = (footer.created_by or "").startswith("parquet-mr")
        spark = metadata.get(b"org.apache.spark.version")
        if spark is not None:
            legacy = int(spark.split(b".")[0]) < 3 or any(
                key.startswith(b"org.apache.spark.legacy") for key in metadata
            )
            knows_days = in_java or not legacy  # other tools copy the metadata of Spark unchanged
            return cls(knows_days, knows_days and (not legacy or b"org.apache.spark.timeZone" in metadata), in_java)
        proleptic = metadata.get(b"writer.date.proleptic")  # Hive
        if proleptic is not None:
            return cls(True, proleptic == b"true", False, julian=proleptic != b"true")
        return cls(not in_java, not in_java, False)

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        mode = "LEGACY" if self.julian else "CORRECTED"
        return (("datetimeRebaseMode", mode), ("int96RebaseMode", mode))


@dataclass(frozen=True)
class _Column:
    """A column of a footer that is not nested."""

    path: str
    footer: pq.FileMetaData
    index: int
    writer: _Writer

    @property
    def reading(self) -> ColumnReading:
        leaf = self.footer.schema.column(self.index)
        annotation = json.loads(leaf.logical_type.to_json())
        kind = leaf.logical_type.type
        if leaf.max_repetition_level:
            return ColumnReading(UnreadableType("list"))
        if kind == "DATE":
            return self._date
        if leaf.physical_type == "INT96" or kind == "TIMESTAMP":
            return self._timestamp(leaf.name, annotation)
        return ColumnReading(_plain_type(leaf, kind, annotation))

    @property
    def _date(self) -> ColumnReading:
        type, column = T.DateType(), sql.name(self.footer.schema.column(self.index).name)
        bounds = self._bounds
        old = not self.writer.knows_days and _reaches(bounds, below=GREGORIAN_DAY)
        return ColumnReading(
            type,
            doubt=first_doubt(
                (f"{column} < DATE '1582-10-15'", UNKNOWN_CALENDAR) if old else None,
                out_of_years(column, type) if _reaches(bounds, _DAYS[0], _DAYS[1]) else None,
            ),
        )

    def _timestamp(self, name: str, annotation: dict[str, Any]) -> ColumnReading:
        unit = annotation.get("timeUnit")
        zoned = unit is None or annotation["isAdjustedToUTC"]
        type: T.DataType = T.TimestampType() if zoned else T.TimestampNTZType()
        column = sql.name(name)
        if unit == "nanoseconds":
            doubt = first_doubt((f"{column} % 1000 != 0", "it has digits beyond microseconds"))
            return ColumnReading(T.TimestampType(), T.LongType(), f"timestamp_micros({column} div 1000)", doubt)
        if unit is None:
            self._check_int96(name)
        day, bounds = _TICKS_OF_DAY.get(unit or "", 0), self._bounds
        old = not self.writer.knows_times and _reaches(bounds, below=_DAY_1900 * day)
        start = timestamp_literal("1900-01-01 00:00:00", type)
        return ColumnReading(
            type,
            doubt=first_doubt(
                (f"{column} < {start}", _UNKNOWN_CLOCK) if old else None,
                out_of_years(column, type) if _reaches(bounds, _DAYS[0] * day, (_DAYS[1] + 1) * day - 1) else None,
            ),
        )

    @property
    def _bounds(self) -> tuple[int, int] | None:
        """The smallest and the largest value; the first is above the second if there are no values. None if not
        known."""
        low, high = 1, 0
        for group in range(self.footer.num_row_groups):
            chunk = self.footer.row_group(group).column(self.index)
            statistics = chunk.statistics
            if statistics is None or not (
                statistics.has_min_max or (statistics.has_null_count and statistics.null_count == chunk.num_values)
            ):
                return None
            if statistics.has_min_max:
                first, last = statistics.min_raw, statistics.max_raw
                low, high = (first, last) if low > high else (min(low, first), max(high, last))
        return low, high

    def _check_int96(self, name: str) -> None:
        """Raises DataLoadError if an INT96 timestamp has digits that Spark would drop.

        INT96 has nanoseconds and Spark reads microseconds; only Spark is known to write no more than those. Such a
        column has no statistics, so it is read here once.
        """
        if self.writer.in_spark:
            return
        exact, cut = (
            pq.ParquetFile(self.path, coerce_int96_timestamp_unit=unit).read(columns=[name]).column(0).cast(pa.int64())
            for unit in ("ns", "us")
        )
        in_range = pc.less(pc.abs(cut), 2**63 // 1000)  # nanoseconds overflow beyond the years 1677 to 2262
        digits = pc.subtract(exact, pc.multiply(pc.divide(exact, 1000), 1000))
        if pc.any(pc.and_(in_range, pc.not_equal(digits, 0))).as_py():
            raise fail(
                "DataLoadError",
                f"column '{name}' of {self.path} has timestamps with digits beyond microseconds",
                hint="write the file with timestamps in microseconds",
            )


def _reaches(bounds: tuple[int, int] | None, below: int, above: int | None = None) -> bool:
    """True if there may be values below or above the limits."""
    if bounds is None:
        return True
    low, high = bounds
    return low <= high and (low < below or (above is not None and high > above))


def _plain_type(leaf: Any, kind: str, annotation: dict[str, Any]) -> T.DataType:
    """Returns the Spark type of a column that is neither a date nor a timestamp."""
    match kind:
        case "INT":
            return (_SIGNED if annotation["isSigned"] else _UNSIGNED)[annotation["bitWidth"]]
        case "DECIMAL" if leaf.precision <= T.DecimalType(38).precision:
            return T.DecimalType(leaf.precision, leaf.scale)
        case "UNKNOWN":
            return T.NullType()
        case "NONE":
            binary = leaf.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
            return T.BinaryType() if binary else _WITHOUT_ANNOTATION[leaf.physical_type]
    return T.StringType() if kind in _TEXT else UnreadableType(kind.lower())
