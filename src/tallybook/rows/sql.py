"""Writes SQL text for the parts of a plan that are the same in every project.

A select of SQL text takes one call to the JVM for each column. With PySpark's functions each column takes a dozen, and
for a few rows these calls are most of the time. What users write is compiled to columns, never to text.

Spark replaces `${env:NAME}`, `${system:...}` and `${any.setting}` in every SQL text before it parses it, unless
`spark.sql.variable.substitute` is false; in a session that others started it usually is true. So names and texts of
users go into SQL only through `name`, `text` and `select`, which never write `${`. Functions of PySpark that take
names (`F.col`, `toDF`, `alias`) do not parse them as SQL and are safe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tallybook.expressions.compile import type_name
from tallybook.expressions.tree import quote
from tallybook.model.columns import INTERNAL, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL = "NULL"
_EXPANDED = "${"


def name(column: str) -> str:
    """Returns SQL that reads a column or a table by its exact name, with any characters in it.

    A name that Spark would expand is written as bytes. Spark accepts that form where a column is read, but not after
    AS; `select` sets names instead.
    """
    quoted = quote(column)
    return f"IDENTIFIER(CAST(X'{quoted.encode().hex()}' AS STRING))" if _EXPANDED in column else quoted


def select(frame: DataFrame, values: Mapping[str, str]) -> DataFrame:
    """Selects values, given as SQL, under exactly these names."""
    if any(_EXPANDED in column for column in values):
        numbered = {internal(str(index)): value for index, value in enumerate(values.values())}
        return select(frame, numbered).toDF(*values)
    named = ((name(column), value) for column, value in values.items())
    return frame.selectExpr(*(value if value == column else f"{value} AS {column}" for column, value in named))


def internal(name: str) -> str:
    """Returns the name of an internal column. Its colon distinguishes it from every column that a user can declare, and
    the rest of the prefix from columns in files, where a header such as `#row` or `__file` is not unusual.

    In SQL it must be quoted with `name`.
    """
    return f"{INTERNAL}{name}"


def text(value: str) -> str:
    """Returns a text literal. Unusual characters are written as bytes, because a setting of the session decides how a
    backslash is read."""
    if re.fullmatch(r"[\w .,:;/@+-]*", value, re.ASCII):
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"


def timestamp(value: datetime, number: str | None = None) -> str:
    """Returns a timestamp literal, in UTC.

    `number`, any whole number of a row, keeps Spark from writing the timestamp into the code that it generates. The
    code would differ in every run, and a session with many runs would compile it each time.
    """
    literal = f"TIMESTAMP_LTZ '{value.astimezone(UTC).isoformat()}'"
    return literal if number is None else f"get(array({literal}, {literal}), int({number} < 0))"


def typed(value: str, type: ColumnType) -> str:
    """Returns the value cast to a type."""
    return f"CAST({value} AS {type_name(type)})"
