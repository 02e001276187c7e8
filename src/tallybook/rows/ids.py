"""Row ids: UUIDv7 text that is unique in a metadata store, ordered like the rows came in, and always the same again.

    xxxxxxxx-xxxx-7ooo-yyyy-yyyyyyyyyyyy
    48 bits  the run's own millisecond, given out once by the store
    12 bits  which step of the run made the row: 0 for input rows, else the operation's rank
    62 bits  which row of that step: its position in the data, or a number made of the group's key

Nothing is random and nothing depends on how Spark splits the work, so a retry, a second output or a replay gives
every row the id it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

POSITION = "__position"
"""The internal column of loaded rows that numbers them: below 2^62, in the order they came in."""

MAX_STEPS = 2**12 - 1
_VARIANT = -(2**63)
_LOW = 2**48
_TIE_BITS = 12
_HASH_MASK = 2**50 - 1


@dataclass(frozen=True)
class RowIds:
    """Makes the ids of one run."""

    epoch_ms: int
    ranks: Mapping[int, int]
    """The rank of each operation by its seq; input rows have seq 0 and rank 0."""

    def text(self, seq: int, number: Column) -> Column:
        """The id of a row made by operation `seq`, from a number below 2^62.

        Positions are almost always below 2^48 (256 files of any length), so that one piece of text before the last
        dash is the same for all: that halves the cost of the commonest column of all. A guard bit above the digits
        keeps their zeros.
        """
        stamp = f"{self.epoch_ms:012x}"
        prefix = f"{stamp[:8]}-{stamp[8:]}-7{self.ranks[seq]:03x}-"
        low = F.lower(F.substring(F.hex(number.bitwiseOR(F.lit(_LOW))), 2, 12))
        digits = F.lower(F.hex(number.bitwiseOR(F.lit(_VARIANT))))
        whole = F.concat(F.lit(prefix), F.substring(digits, 1, 4), F.lit("-"), F.substring(digits, 5, 12))
        return F.when(number < F.lit(_LOW), F.concat(F.lit(f"{prefix}8000-"), low)).otherwise(whole)


def group_number(keys: Sequence[Column]) -> Column:
    """A number for each group that follows from its key alone.

    Fifty bits of hash, and the rank among the groups that share them, so that two keys never get one number.
    """
    hashed = F.xxhash64(*keys).bitwiseAND(F.lit(_HASH_MASK))
    rank = F.row_number().over(Window.partitionBy(hashed).orderBy(*keys)) - 1
    return F.shiftleft(hashed, _TIE_BITS).bitwiseOR(rank.cast("bigint"))
