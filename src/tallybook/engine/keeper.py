"""Keeps rows that are used more than once, so that Spark computes them once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from tallybook.model.columns import ColumnType


def keeper_of(spark: SparkSession) -> Keeper:
    """Returns the keeper for a session.

    Rows in checkpoints have a short plan, which makes every later step cheaper, but a lost executor takes them along.
    Where Spark runs in one process, no executor can be lost alone.
    """
    allow_deep_plans()
    master = spark.conf.get("spark.master", "") or ""
    return Keeper() if master == "local" or master.startswith("local[") else MemoryKeeper()


def allow_deep_plans() -> None:
    """Lets Spark Connect make a checkpoint of a long plan.

    Its client copies the plan into the message of the checkpoint. Protobuf refuses to copy what is nested more than a
    hundred levels deep, which thirty operations are, unless messages of any size are allowed. The server has a limit
    of its own, `spark.connect.grpc.marshallerRecursionLimit`, which is 1024.
    """
    with suppress(ImportError):  # no Connect client is installed, or it has another protobuf, without this limit
        from google._upb._message import SetAllowOversizeProtos

        SetAllowOversizeProtos(True)


class Keeper:
    """Keeps rows in local checkpoints, which Spark removes when nothing refers to the frame any more."""

    def keep(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns the same rows, which are computed once even if they are used several times."""
        return self.keep_table(frame)

    def cut(self, frame: DataFrame, _columns: Mapping[str, ColumnType]) -> DataFrame:
        """Returns the same rows with a plan that does not depend on how they were computed."""
        return frame.localCheckpoint(eager=False)

    def keep_table(self, frame: DataFrame) -> DataFrame:
        """Returns the rows of a small joined table, which are computed once even if they are used several times."""
        return frame.localCheckpoint(eager=False)

    def release(self) -> None:
        """Releases all rows that were kept."""


@dataclass
class MemoryKeeper(Keeper):
    """Keeps rows in memory, spilling to disk, until they are released. Spark computes again what an executor lost."""

    _frames: list[DataFrame] = field(default_factory=list)

    def keep_table(self, frame: DataFrame) -> DataFrame:
        self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def release(self) -> None:
        while self._frames:
            self._frames.pop().unpersist()
