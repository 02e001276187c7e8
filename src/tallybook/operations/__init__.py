"""The five operations. Importing the package fills `base.OPERATIONS`."""

from __future__ import annotations

from tallybook.operations import aggregate, append, delete, output, update

__all__ = ["aggregate", "append", "delete", "output", "update"]
