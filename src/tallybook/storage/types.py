"""What may become what without loss, and text read strictly.

The session's time zone is UTC (the session module sees to it): a date or a zoneless timestamp becomes an instant
in that zone.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.compile import FIRST_DAY, LAST_DAY, spark_type
from tallybook.model.columns import ColumnType

_INTEGER_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}
_SAFE_INTEGER_DIGITS = 18
"""Every number of so many digits fits 64 bits."""


def widens(found: T.DataType, declared: ColumnType) -> bool:
    """Whether every value of the type found in the data is a value of the declared type."""
    if isinstance(found, T.NullType):
        return True
    digits = _INTEGER_DIGITS.get(found.__class__)
    match declared.kind:
        case "integer":
            whole = isinstance(found, T.DecimalType) and found.scale == 0 and found.precision <= _SAFE_INTEGER_DIGITS
            return digits is not None or whole
        case "decimal":
            if isinstance(found, T.DecimalType):
                return found.scale <= declared.scale and found.precision - found.scale <= declared.integer_digits
            return digits is not None and digits <= declared.integer_digits
        case "timestamp":
            return isinstance(found, T.TimestampType | T.TimestampNTZType | T.DateType)
        case "string":
            return isinstance(found, T.StringType | T.CharType | T.VarcharType)
    return found == spark_type(declared)


def is_timestamp(found: T.DataType) -> bool:
    """True for timestamps with and without a time zone."""
    return isinstance(found, T.TimestampType | T.TimestampNTZType)


def bound_of_validity(moment: Column) -> Column:
    """The date that a bound of validity counts as if it is a timestamp: the first day that does not begin before it.

    A row is valid on a day if it is valid when that day begins, in UTC. So a row that ends at 23:59:59 is still valid
    on that day, and of two rows that follow each other one is valid on every day. The last day there is stays it.
    """
    first, last = F.date_add((moment - F.expr("INTERVAL 1 MICROSECOND")).cast("date"), 1), F.lit(LAST_DAY).cast("date")
    return F.when(first > last, last).otherwise(first)


def from_text(text: Column, type: ColumnType) -> Column:
    """The value a text stands for, NULL where it is not exactly one; spaces around it do not count.

    Texts themselves are kept as they are, but for the replacement character, which is what bytes that are no UTF-8
    have become by the time they can be seen here.
    """
    if type.kind == "string":
        return F.when(~text.contains("\ufffd"), text)
    bare = F.trim(text)
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
    """ISO; without a zone it means UTC, without a time midnight. Digits beyond microseconds would be cut: refused.

    A zone can move a moment out of the years 1 to 9999.
    """
    zoned = (
        F.when(text.rlike(rf"^{_DAY}$"), F.concat(text, F.lit(" 00:00:00Z")))
        .when(text.rlike(rf"^{_DAY}{_TIME}$"), F.concat(text, F.lit("Z")))
        .when(text.rlike(rf"^{_DAY}{_TIME}{_ZONE}$"), text)
    )
    moment = zoned.try_cast("timestamp_ltz")
    bounds = (f"{FIRST_DAY} 00:00:00Z", f"{LAST_DAY} 23:59:59.999999Z")
    return F.when(moment.between(*(F.lit(bound).cast("timestamp_ltz") for bound in bounds)), moment)


def _decimal(text: Column, type: ColumnType) -> Column:
    """Digits and a point, with or without an exponent; NULL when a digit other than zero would be lost.

    Spark's own cast rounds, so the digits are counted in the text: in a plain number by the pattern alone, else
    fraction digits, less trailing zeros, less the exponent, is the scale the number needs.
    """
    plain = rf"^[+-]?(?=\.?\d)\d*(\.\d{{0,{type.scale}}}0*)?$"
    with_exponent = r"^[+-]?(?=\.?\d)\d*(\.\d*)?[eE][+-]?\d{1,4}$"
    digits = F.regexp_extract(text, r"^[+-]?([\d.]*)[eE]", 1)
    fraction = F.length(F.regexp_extract(text, r"\.(\d*)[eE]", 1))
    zeros = F.length(F.regexp_extract(F.translate(digits, ".", ""), "(0*)$", 1))
    exponent = F.regexp_extract(text, r"[eE]([+-]?\d+)$", 1).try_cast("int")
    fits = ~digits.rlike("[1-9]") | (fraction - zeros - exponent <= type.scale)
    return F.when(text.rlike(plain) | (text.rlike(with_exponent) & fits), text.try_cast(spark_type(type)))


def wanted(type: ColumnType) -> str:
    """What a value of this type looks like, for the hint of a message."""
    match type.kind:
        case "integer":
            return "a whole number of at most 64 bits, without separators"
        case "decimal":
            return (
                f"a number with at most {type.integer_digits} digits before the point and {type.scale} after it, "
                "without thousands separators"
            )
        case "boolean":
            return "true or false"
        case "date":
            return "a date such as 2026-01-31"
        case "timestamp":
            return "a timestamp such as 2026-01-31T12:00:00Z, with at most microseconds"
    return "text in UTF-8"
