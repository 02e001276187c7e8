"""Keeps rows that are used more than once, so that they are computed once.

A frame is kept where it forks and let go after the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tallybook.model.columns import ColumnType
from tallybook.operations.base import Step


class Keeping:
    """Keeps rows in files of Spark's own, which go when nobody refers to the frame any more."""

    def is_due(self, steps: Sequence[Step], index: int, *, forked: bool) -> bool:
        """True if the frame before a step is to be kept: it is written and used again, or summarised once more."""
        step = steps[index]
        if step.publishes is not None:
            return any(later.publishes is not None for later in steps[index + 1 :])
        return forked and step.forks

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """The same rows, computed once however often they are used."""
        return frame.localCheckpoint(eager=False)

    def release(self) -> None:
        """Lets go of everything kept."""


@dataclass
class KeptInMemory(Keeping):
    """Keeps rows in memory, spilling to disk, until they are released."""

    _frames: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def release(self) -> None:
        while self._frames:
            self._frames.pop().unpersist()
