"""Membership in a long list of literals.

Spark takes a literal for each choice: PySpark makes it with several calls to the JVM, and then every rule of the
optimiser looks at it. A hundred thousand of them take minutes. Here the whole list is one literal, the text of a hash
table, which Spark reads once while it plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING
from zlib import crc32

from tallybook.expressions.functions.spark import F
from tallybook.model.columns import STRING, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tallybook.expressions.registry import Building

LONG = 200
"""Longer lists of literals become a table."""
_PER_BUCKET = 4


def among(c: Building, value: Column, literals: Iterable[object]) -> Column:
    """True where the value equals one of the literals, which are not NULL; NULL where the value is NULL.

    Values are compared as text in the value's own type: in one type a value has one text.
    """
    texts = {text for literal in literals if (text := _text(literal, c.args[0].type)) is not None}
    table: list[list[str]] = [[] for _ in range(len(texts) // _PER_BUCKET + 1)]
    for text in sorted(texts):
        table[crc32(text.encode()) % len(table)].append(text)
    buckets = F.from_json(F.lit(json.dumps(table)), "array<array<string>>")
    own = c.cast(value, STRING)
    return F.array_contains(F.get(buckets, (F.crc32(own) % len(table)).cast("int")), own)


def _text(literal: object, type: ColumnType) -> str | None:
    """The literal as Spark casts that value of the type to text; None when the type has no such value."""
    if isinstance(literal, str):
        return literal
    if isinstance(literal, bool):
        return "true" if literal else "false"
    assert isinstance(literal, int | Decimal)
    scale = type.scale if type.kind == "decimal" else 0
    text = format(Decimal(literal), f".{scale}f")
    return text if Decimal(text) == literal else None
