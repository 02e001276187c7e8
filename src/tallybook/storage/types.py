"""Converts values without loss: which types fit a declared type, and how text is parsed strictly.

The session's time zone is UTC, which the engine ensures. A date, or a timestamp without a zone, is a time in that zone.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.compile import FIRST_DAY, LAST_DAY, spark_type
from tallybook.model.columns import ColumnType
from tallybook.storage.notation import ISO, Notation

_INTEGER_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}
_SAFE_INTEGER_DIGITS = 18
"""Every number with this many digits fits 64 bits."""


def widens(actual: T.DataType, declared: ColumnType) -> bool:
    """True if every value of the data's type is a value of the declared type."""
    if isinstance(actual, T.NullType):
        return True
    digits = _INTEGER_DIGITS.get(actual.__class__)
    match declared.kind:
        case "integer":
            whole = isinstance(actual, T.DecimalType) and actual.scale == 0 and actual.precision <= _SAFE_INTEGER_DIGITS
            return digits is not None or whole
        case "decimal":
            if isinstance(actual, T.DecimalType):
                return actual.scale <= declared.scale and actual.precision - actual.scale <= declared.integer_digits
            return digits is not None and digits <= declared.integer_digits
        case "timestamp":
            return isinstance(actual, T.TimestampType | T.TimestampNTZType | T.DateType)
        case "string":
            return isinstance(actual, T.StringType | T.CharType | T.VarcharType)
    return actual == spark_type(declared)


def is_timestamp(actual: T.DataType) -> bool:
    """True for timestamps with and without a time zone."""
    return isinstance(actual, T.TimestampType | T.TimestampNTZType)


def bound_of_validity(timestamp: Column) -> Column:
    """Returns the date for a bound of validity that is a timestamp: the first day that does not begin before it.

    A row is valid on a day if it is valid when that day begins, in UTC. So a row that ends at 23:59:59 is still valid
    on that day, and of two rows that follow each other one is valid on every day. 9999-12-31 is the last day.
    """
    first, last = (
        F.date_add((timestamp - F.expr("INTERVAL 1 MICROSECOND")).cast("date"), 1),
        F.lit(LAST_DAY).cast("date"),
    )
    return F.when(first > last, last).otherwise(first)


def from_text(text: Column, type: ColumnType, notation: Notation = ISO) -> Column:
    """Returns the value of a text, NULL if the text is not exactly one value; spaces around it do not count.

    A string is returned unchanged. If it has a replacement character it is NULL, because Spark has already put that in
    place of bytes that are not UTF-8.
    """
    if type.kind == "string":
        return F.when(~text.contains("\ufffd"), text)
    bare = notation.iso(F.trim(text), type)
    match type.kind:
        case "integer":
            return F.regexp_extract(bare, r"^([+-]?\d+)(?:\.0*)?$", 1).try_cast("bigint")
        case "decimal":
            return _decimal(bare, type)
        case "boolean":
            lower = F.lower(bare)
            return F.when(lower.isin("true", "false"), lower == "true")
        case "date":
            return F.when(bare.rlike(rf"^{_DAY}$"), bare.try_cast("date"))
    return _timestamp(bare)


_DAY = r"(?!0000)\d{4}-\d{2}-\d{2}"
_TIME = r"[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6}0*)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"


def _timestamp(text: Column) -> Column:
    """Parses an ISO timestamp: without a zone it is in UTC, without a time it is midnight. It is NULL if it has digits
    beyond microseconds, or if its zone moves it out of the years 1 to 9999.
    """
    zoned = (
        F.when(text.rlike(rf"^{_DAY}$"), F.concat(text, F.lit(" 00:00:00Z")))
        .when(text.rlike(rf"^{_DAY}{_TIME}$"), F.concat(text, F.lit("Z")))
        .when(text.rlike(rf"^{_DAY}{_TIME}{_ZONE}$"), text)
    )
    timestamp = zoned.try_cast("timestamp_ltz")
    bounds = (f"{FIRST_DAY} 00:00:00Z", f"{LAST_DAY} 23:59:59.999999Z")
    return F.when(timestamp.between(*(F.lit(bound).cast("timestamp_ltz") for bound in bounds)), timestamp)


def _decimal(text: Column, type: ColumnType) -> Column:
    """Parses a number with or without an exponent; NULL if a digit other than zero would be lost.

    Spark's own cast rounds, so the digits are counted in the text: in a plain number by the pattern. In a number with
    an exponent, the scale is the number of fraction digits, minus trailing zeros, minus the exponent.
    """
    plain = rf"^[+-]?(?=\.?\d)\d*(\.\d{{0,{type.scale}}}0*)?$"
    with_exponent = r"^[+-]?(?=\.?\d)\d*(\.\d*)?[eE][+-]?\d{1,4}$"
    digits = F.regexp_extract(text, r"^[+-]?([\d.]*)[eE]", 1)
    fraction = F.length(F.regexp_extract(text, r"\.(\d*)[eE]", 1))
    zeros = F.length(F.regexp_extract(F.translate(digits, ".", ""), "(0*)$", 1))
    exponent = F.regexp_extract(text, r"[eE]([+-]?\d+)$", 1).try_cast("int")
    fits = ~digits.rlike("[1-9]") | (fraction - zeros - exponent <= type.scale)
    return F.when(text.rlike(plain) | (text.rlike(with_exponent) & fits), text.try_cast(spark_type(type)))


def wanted(type: ColumnType, notation: Notation = ISO) -> str:
    """Describes a value of this type for the hint of a message."""
    match type.kind:
        case "integer":
            return f"a whole number of at most 64 bits, {_separators(notation)}"
        case "decimal":
            point = "point" if notation.decimal == "." else "comma"
            digits = f"at most {type.integer_digits} digits before the {point} and {type.scale} after it"
            return f"a number with {digits}, {_separators(notation)}"
        case "boolean":
            return "true or false"
        case "date":
            return f"a date written as {notation.date}" if notation.date else "a date such as 2026-01-31"
        case "timestamp" if notation.timestamp:
            return f"a timestamp written as {notation.timestamp}"
        case "timestamp":
            return "a timestamp such as 2026-01-31T12:00:00Z, with at most microseconds"
    return "text in UTF-8"


def _separators(notation: Notation) -> str:
    if notation.thousands is None:
        return "without thousands separators"
    return f"with '{notation.thousands}' before every three digits or without separators"
