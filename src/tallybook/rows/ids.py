"""Row ids: UUIDv7 text that is unique in a metadata store, ordered like the rows came in, and always the same again.

    xxxxxxxx-xxxx-7ooo-yyyy-yyyyyyyyyyyy
    48 bits  the run's own millisecond, given out once by the store
    12 bits  which step of the run made the row: 0 for input rows, else the operation's rank
    62 bits  which row of that step: its position in the data, or a number made of the group's key

Nothing is random and nothing depends on how Spark splits the work, so a retry, a second output or a replay gives
every row the id it had.

Ids are SQL text, as `rows.system.select_typed` takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallybook.rows import sql

POSITION = sql.internal("position")
"""The internal column of loaded rows that numbers them: below 2^62, in the order they came in."""

MAX_STEPS = 2**12 - 1
_TIE_BITS = 12
_HASH_MASK = 2**50 - 1


def hash_of(keys: Sequence[str]) -> str:
    """A number that follows from the key of a group; two keys may share one."""
    return f"xxhash64({', '.join(map(sql.name, keys))})"


@dataclass(frozen=True)
class RowIds:
    """Makes the ids of one run."""

    epoch_ms: int
    ranks: Mapping[int, int]
    """The rank of each operation by its seq; input rows have seq 0 and rank 0."""

    def of_rows(self, seq: int) -> str:
        """The ids of rows that operation `seq` takes in, by their POSITION."""
        return self._id(seq, sql.name(POSITION))

    def of_groups(self, seq: int, keys: Sequence[str]) -> str:
        """The ids of rows that operation `seq` makes, one for each group.

        The number of a group follows from its key alone: fifty bits of hash, and the rank among the groups that share
        them, so that two keys never get one number.
        """
        names = ", ".join(map(sql.name, keys))
        hashed = f"({hash_of(keys)} & {_HASH_MASK}L)"
        rank = f"(row_number() OVER (PARTITION BY {hashed} ORDER BY {names}) - 1)"
        return self._id(seq, f"(shiftleft({hashed}, {_TIE_BITS}) | {rank})")

    def _id(self, seq: int, number: str) -> str:
        stamp = f"{self.epoch_ms:012x}"
        digits = f"lower(hex({number} | shiftleft(1L, 63)))"
        first = f"'{stamp[:8]}-{stamp[8:]}-7{self.ranks[seq]:03x}-'"
        return f"concat({first}, substring({digits}, 1, 4), '-', substring({digits}, 5))"
