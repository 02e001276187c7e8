"""Spark's functions, imported when the first one is used: checking a workspace must not pay for Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import functions as F
else:

    class _Late:
        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Late()

__all__ = ["F"]
