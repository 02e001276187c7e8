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

__all__ = ["F", "balanced"]


def balanced(combine: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """All combined, in order: a thousand conditions are ten levels deep, where a chain would exhaust Spark's stack."""
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return combine(balanced(combine, columns[:half]), balanced(combine, columns[half:]))
