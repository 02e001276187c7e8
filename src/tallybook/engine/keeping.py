"""Caches frames that are used more than once, so that they are computed once. They are released after the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tallybook.model.columns import ColumnType
from tallybook.operations.base import Step


class Keeping:
    """Keeps rows in checkpoint files of Spark, which Spark removes when nothing refers to the frame any more."""

    def is_due(self, steps: Sequence[Step], index: int, *, forked: bool) -> bool:
        """True if the frame before a step is used again: by another output, or by a second step that forks it."""
        step = steps[index]
        if step.publishes is not None:
            return any(later.publishes is not None for later in steps[index + 1 :])
        return forked and step.forks

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns the same rows, which are computed once even if they are used several times."""
        return frame.localCheckpoint(eager=False)

    def release(self) -> None:
        """Releases all rows that were kept."""


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
