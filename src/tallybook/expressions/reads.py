"""Finds the columns and tables that a checked expression reads."""

from __future__ import annotations

from collections.abc import Iterator

from tallybook.expressions.check import Typed, TypedCall, TypedCast, TypedColumn
from tallybook.expressions.scope import Resolved


def columns_read(typed: Typed) -> Iterator[Resolved]:
    """Yields every column that the expression reads, once for each time it is read."""
    if isinstance(typed, TypedColumn):
        yield typed.column
    elif isinstance(typed, TypedCast):
        yield from columns_read(typed.arg)
    elif isinstance(typed, TypedCall):
        for arg in typed.args:
            yield from columns_read(arg)


def tables_read(typed: Typed) -> set[str]:
    """Returns the lookups and join aliases that the expression reads."""
    return {column.table for column in columns_read(typed) if column.table is not None}
