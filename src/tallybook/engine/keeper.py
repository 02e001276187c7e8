"""Keeps rows that are used more than once, so that Spark computes them once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tallybook.model.columns import ColumnType


class Keeper:
    """Keeps rows in checkpoint files of Spark, which Spark removes when nothing refers to the frame any more."""

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns the same rows, which are computed once even if they are used several times."""
        return frame.localCheckpoint(eager=False)

    def cut(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns the same rows with a plan that does not depend on how they were computed."""
        return frame.localCheckpoint(eager=False)

    def release(self) -> None:
        """Releases all rows that were kept."""


@dataclass
class MemoryKeeper(Keeper):
    """Keeps rows in memory, spilling to disk, until they are released."""

    _frames: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def release(self) -> None:
        while self._frames:
            self._frames.pop().unpersist()
