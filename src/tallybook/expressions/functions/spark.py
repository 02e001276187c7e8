"""Spark's functions, imported when the first one is used: checking a workspace must not pay for Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import functions as F
else:

    class _Late:
        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Late()

__all__ = ["F", "balanced", "computed_once"]


def balanced(combine: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """All combined, in order: a thousand conditions are ten levels deep, where a chain would exhaust Spark's stack."""
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return combine(balanced(combine, columns[:half]), balanced(combine, columns[half:]))


def computed_once(column: Column, use: Callable[[Column], Column]) -> Column:
    """What `use` makes of a column that it may mention several times: Spark copies a column wherever it is mentioned.

    A function over an array of one is the only variable an expression can have.
    """
    return F.get(F.transform(F.array(column), use), F.lit(0))
