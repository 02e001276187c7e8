"""SQL text for the parts of a plan that are the same in every project.

A select of text is one call to the JVM for each column; made of PySpark's functions, each column takes a dozen, and
for a few rows these calls are most of the time. What users write is compiled to columns, never to text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tallybook.expressions.compile import type_name
from tallybook.model.columns import ColumnType

NULL = "NULL"


def name(column: str) -> str:
    """A column by its exact name, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"


def internal(name: str) -> str:
    """The name of a column that only the engine has. The colon keeps it apart from every column a user can declare,
    whatever its case, the rest from what files have: a header such as `#row` or `__file` is nothing unusual.

    It is always quoted in SQL, with `name`.
    """
    return f"tallybook:{name}"


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
