"""SQL text for the parts of a plan that are the same in every project.

A select of text is one call to the JVM for each column; made of PySpark's functions, each column takes a dozen, and
for a few rows these calls are most of the time. What users write is compiled to columns, never to text.

Spark replaces `${env:NAME}`, `${system:...}` and `${any.setting}` in every SQL text before it parses it, unless
`spark.sql.variable.substitute` is false; in a session that others started it usually is true. So names and texts that
users give go into SQL through `name`, `text` and `select` only, which never write `${`. Functions of PySpark that take
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
    """Reads a column, or a table, by its exact name, whatever characters it has.

    A name that Spark would expand is written as bytes. Spark takes that form only where something is read, not after
    AS: `select` gives names.
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
    """The name of a column that only the engine has. The colon keeps it apart from every column a user can declare,
    whatever its case, the rest from what files have: a header such as `#row` or `__file` is nothing unusual.

    It is always quoted in SQL, with `name`.
    """
    return f"{INTERNAL}{name}"


def text(value: str) -> str:
    """A text literal. One with odd characters goes as bytes: how a backslash is read is a setting of the session."""
    if re.fullmatch(r"[\w .,:;/@+-]*", value, re.ASCII):
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"


def moment(value: datetime, number: str | None = None) -> str:
    """A timestamp literal, in UTC.

    `number`, any whole number of a row, keeps Spark from writing the timestamp into the code it generates. It would be
    other code in every run, and a session that runs often would compile and warm it up each time.
    """
    literal = f"TIMESTAMP_LTZ '{value.astimezone(UTC).isoformat()}'"
    return literal if number is None else f"get(array({literal}, {literal}), int({number} < 0))"


def typed(value: str, type: ColumnType) -> str:
    """The value at a type."""
    return f"CAST({value} AS {type_name(type)})"
