"""Collects the rows of small frames."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tallybook.rows import sql

Values = tuple[object, ...]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def collected(frame: DataFrame) -> list[Values]:
    """Returns the rows of a small frame, with timestamps in UTC.

    Timestamps are collected as microseconds: PySpark would convert them to the local time of this machine, which has no
    year 1.
    """
    fields = frame.schema.fields
    moments = [isinstance(field.dataType, T.TimestampType) for field in fields]
    if not any(moments):
        return list(map(tuple, frame.collect()))
    names = (sql.name(field.name) for field in fields)
    readable = [f"unix_micros({name})" if of_time else name for name, of_time in zip(names, moments, strict=True)]
    return [
        tuple(_moment(value) if of_time else value for value, of_time in zip(row, moments, strict=True))
        for row in frame.selectExpr(*readable).collect()
    ]


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)
