"""Reads what an ORC file states about its columns, and finds dates and timestamps that Spark cannot write exactly.

Spark reads every old date as a Julian one, even if the file uses another calendar, and drops digits of timestamps below
a microsecond. As text it reads both exactly, but more slowly. So columns whose statistics show only recent dates are
read as dates, the others as text.

PyArrow returns the tail of a file as a Protocol Buffers message, and has no functions for the fields needed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.rows import sql
from tallybook.rows.raising import raising
from tallybook.storage.formats.column_reading import (
    GREGORIAN_DAY,
    UNKNOWN_CALENDAR,
    ColumnReading,
    FileReading,
    UnreadableType,
    first_doubt,
    out_of_years,
    wanted_columns,
)
from tallybook.storage.formats.signature import Signature, unreadable
from tallybook.storage.scan import quoted

_DATE, _TIMESTAMP, _INSTANT = 15, 9, 18
_TYPES: dict[int, T.DataType] = {
    0: T.BooleanType(),
    1: T.ByteType(),
    2: T.ShortType(),
    3: T.IntegerType(),
    4: T.LongType(),
    5: T.FloatType(),
    6: T.DoubleType(),
    7: T.StringType(),
    8: T.BinaryType(),
    _TIMESTAMP: T.TimestampType(),
    _DATE: T.DateType(),
    16: T.StringType(),
    17: T.StringType(),
    _INSTANT: T.TimestampType(),
}
_JAVA, _CPP = 0, 1
_JULIAN, _PROLEPTIC = 1, 2
_LAST_DAY = 2932896
"""9999-12-31 in days since 1970."""
_MILLIS_OF_DAY = 86_400_000
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "FileTail": {"footer": (2, "Footer")},
    "Footer": {
        "types": (4, "[Type]"),
        "metadata": (5, "[Pair]"),
        "statistics": (7, "[Statistics]"),
        "writer": (9, "uint32"),
        "calendar": (11, "uint32"),
    },
    "Type": {
        "kind": (1, "uint32"),
        "subtypes": (2, "[uint32]"),
        "fieldNames": (3, "[string]"),
        "precision": (5, "uint32"),
        "scale": (6, "uint32"),
        "attributes": (7, "[Pair]"),
    },
    "Pair": {"name": (1, "string"), "value": (2, "bytes")},
    "Statistics": {"numberOfValues": (1, "uint64"), "date": (7, "Days"), "timestamp": (9, "Millis")},
    "Days": {"minimum": (1, "sint64"), "maximum": (2, "sint64")},
    "Millis": {"minimum": (3, "sint64"), "maximum": (4, "sint64")},
}
"""The messages and fields of the ORC specification that are used here: number and type of each field."""
_MAGIC = b"ORC"
_PROLEPTIC_OPTIONS = (("orc.proleptic.gregorian", "true"), ("orc.proleptic.gregorian.default", "true"))


def _read(file: Path) -> None:
    opened = orc.ORCFile(file)
    for stripe in range(opened.nstripes):
        opened.read_stripe(stripe)


SIGNATURE = Signature("ORC", ".orc", _MAGIC, lambda last: _MAGIC in last, _read)


def orc_reading(path: str, wanted: Iterable[str]) -> FileReading:
    """Returns how to read the wanted columns of a local file. Raises DataLoadError if its tail cannot be read."""
    try:
        tail = _Tail(_file_tail().FromString(orc.ORCFile(path).reader.serialized_file_tail()).footer)
        names = tail.names
    except (pa.ArrowException, OSError, DecodeError) as error:
        raise unreadable(SIGNATURE, path) from error
    present = wanted_columns(path, names, wanted)
    if quoted_names := [name for name in present if "`" in name]:
        message = (
            f"column '{quoted_names[0]}' of {path} cannot be read: Spark loses an ORC column with a '`' in its name"
        )
        raise fail("SchemaMismatch", message, hint="rename the column in the data")
    # Files of old Hive versions have no real names; Spark then reads by position and needs all columns.
    listed = names if all(name.startswith("_col") for name in names) else present
    readings = tuple((name, tail.reading(name)) for name in listed)
    options = _PROLEPTIC_OPTIONS if tail.calendar == _PROLEPTIC else ()
    return FileReading(readings, options, frozenset(names))


def remote_reading(type: T.DataType, name: str) -> ColumnReading:
    """Returns how to read a column of a file whose tail cannot be read, so that its writer is not known."""
    match type:
        case T.DateType():
            return _date(name, calendar_known=False)
        case T.TimestampType():
            return _timestamp(name, zoned=False, calendar_known=False, writer=None)
    return ColumnReading(type)


def check_time_zone(spark: SparkSession, problem: str, what: str) -> None:
    """Raises a problem if Java does not run in UTC, because Spark reads ORC timestamps in the time zone of Java."""
    zone = spark.range(1).selectExpr("java_method('java.time.ZoneId', 'systemDefault')").collect()[0][0]
    if zone not in ("UTC", "Etc/UTC", "GMT", "Z"):
        raise fail(
            problem,
            f"{what}: timestamps in ORC files need Java to run in UTC, but it runs in {zone}",
            hint="start Spark with -Duser.timezone=UTC for the driver and the executors",
        )


def exact_in_orc(frame: DataFrame) -> DataFrame:
    """Returns the rows; the job fails on a value that Spark would change in an ORC file.

    Spark moves the days between the calendars to 1582-10-15. Close to 1970 a fraction of a second is ambiguous, see
    `_timestamp`; readers refuse the same values.
    """
    between = "{} BETWEEN {} '1582-10-05{}' AND {} '1582-10-14{}'"
    near_1970 = (
        "unix_micros({0}) BETWEEN -999000 AND -1 OR unix_micros({0}) BETWEEN -54000000000 AND 54000000000 "
        "AND pmod(unix_micros({0}), 30000000) BETWEEN 1000 AND 999999"
    )

    def checked(field: T.StructField) -> Any:
        column = sql.name(field.name)
        if isinstance(field.dataType, T.DateType):
            lost = between.format(column, "DATE", "", "DATE", "")
        elif isinstance(field.dataType, T.TimestampType):
            kind = "TIMESTAMP_LTZ"
            lost = between.format(column, kind, " 00:00:00Z", kind, " 23:59:59.999999Z")
            lost = f"{lost} OR {near_1970.format(column)}"
        else:
            return quoted(field.name)
        text = quoted(field.name).cast("string")
        failure = raising("WriteFailed", column=field.name, value=text)
        return F.when(F.expr(lost), failure).otherwise(quoted(field.name)).alias(field.name)

    return frame.select(*(checked(field) for field in frame.schema.fields))


def _date(name: str, *, calendar_known: bool) -> ColumnReading:
    """Returns how to read a date as text. If the calendar is not known, only days that are the same in both calendars
    can be trusted."""
    column = sql.name(name)
    old = None if calendar_known else (f"{column} < '1582-10-15'", UNKNOWN_CALENDAR)
    return ColumnReading(T.DateType(), T.StringType(), doubt=first_doubt(old))


def _timestamp(name: str, *, zoned: bool, calendar_known: bool, writer: int | None) -> ColumnReading:
    """Returns how to read a timestamp as text.

    The C++ library stores a fraction of a second before 1970 in a way that the Java library misreads. The Java library
    stores the last second before 1970 (in the writer's time zone) like the first second after it, if the fraction is at
    least a millisecond.
    """
    column = sql.name(name)
    before_1970 = (f"{column} < '1970' AND {column} LIKE '%.%'", "it is before 1970 and has a fraction of a second")
    epoch = f"{column} BETWEEN '1969-12-31 09' AND '1970-01-01 15' AND {column} RLIKE ':(00|30)[.](?!000)'"
    doubt = first_doubt(
        None if calendar_known else (f"{column} < '1582-10-15'", UNKNOWN_CALENDAR),
        None if writer == _JAVA else before_1970,
        None
        if writer == _CPP
        else (epoch, "the file cannot tell the last second before 1970 from the first one after"),
    )
    value = f"substring_index({column}, ' ', 2)" if zoned else None  # the name of the zone follows, which is UTC
    return ColumnReading(T.TimestampType(), T.StringType(), value, doubt)


@dataclass(frozen=True)
class _Tail:
    """A `Footer` of the ORC specification."""

    footer: Any

    @cached_property
    def names(self) -> list[str]:
        """The columns of the row, which is the first type."""
        return list(self.footer.types[0].fieldNames)

    @cached_property
    def _by_spark(self) -> bool:
        return self.footer.writer == _JAVA and any(
            item.name == "org.apache.spark.version" for item in self.footer.metadata
        )

    @cached_property
    def calendar(self) -> int | None:
        """The calendar of old dates. If the file does not state it, Spark used the Julian one (before version 3), and
        the C++ library the proleptic one."""
        inferred = _JULIAN if self._by_spark else _PROLEPTIC if self.footer.writer == _CPP else None
        return self.footer.calendar or inferred

    def reading(self, name: str) -> ColumnReading:
        """Returns how to read a column of the row."""
        index = self.footer.types[0].subtypes[self.names.index(name)]
        kind, type = self.footer.types[index].kind, self._type(index)
        calendar_known = self.calendar is not None
        if kind == _DATE:
            low, high = self._bounds(index, "date")
            recent = low >= GREGORIAN_DAY and high <= _LAST_DAY
            return ColumnReading(type) if recent else _date(name, calendar_known=calendar_known)
        if kind in (_TIMESTAMP, _INSTANT):
            low, high = self._bounds(index, "timestamp")
            recent = low >= _MILLIS_OF_DAY and high < _LAST_DAY * _MILLIS_OF_DAY
            if recent and self._by_spark:  # others may write nanoseconds
                return ColumnReading(type)
            return _timestamp(name, zoned=kind == _INSTANT, calendar_known=calendar_known, writer=self.footer.writer)
        if isinstance(type, T.TimestampNTZType):
            return ColumnReading(type, doubt=first_doubt(out_of_years(sql.name(name), type)))
        return ColumnReading(type)

    def _bounds(self, index: int, kind: str) -> tuple[float, float]:
        """Returns the smallest and largest value of a column by its statistics; infinite if they are not known."""
        unknown, none = (float("-inf"), float("inf")), (float("inf"), float("-inf"))
        if index >= len(self.footer.statistics):
            return unknown
        statistics = self.footer.statistics[index]
        if statistics.HasField("numberOfValues") and statistics.numberOfValues == 0:
            return none
        bounds = getattr(statistics, kind)
        return (
            (bounds.minimum, bounds.maximum) if bounds.HasField("minimum") and bounds.HasField("maximum") else unknown
        )

    def _type(self, index: int) -> T.DataType:
        column = self.footer.types[index]
        inner = [self._type(sub) for sub in column.subtypes]
        noted = next((item.value.decode() for item in column.attributes if item.name == "spark.sql.catalyst.type"), "")
        match column.kind:
            case 10:
                return T.ArrayType(inner[0])
            case 11:
                return T.MapType(inner[0], inner[1])
            case 12:
                return T.StructType([T.StructField(n, t) for n, t in zip(column.fieldNames, inner, strict=True)])
            case 13:
                return UnreadableType("union")
            case 14:
                return T.DecimalType(column.precision, column.scale)
            case 2 | 3 | 4 if noted:  # Spark stores types that ORC does not have as whole numbers
                return T.TimestampNTZType() if noted == "timestamp_ntz" else UnreadableType(noted)
        return _TYPES[column.kind]


@cache
def _file_tail() -> Any:
    """The class of a `FileTail` message."""
    proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="orc.proto", package="orc", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, written) in fields.items():
            type = written.strip("[]")
            label = proto.LABEL_REPEATED if written != type else proto.LABEL_OPTIONAL
            if type in _MESSAGES:
                message.field.add(
                    name=field, number=number, label=label, type=proto.TYPE_MESSAGE, type_name=f".orc.{type}"
                )
            else:
                scalar = getattr(proto, f"TYPE_{type.upper()}")
                message.field.add(name=field, number=number, label=label, type=scalar)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("orc.FileTail"))
