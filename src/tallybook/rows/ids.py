"""Makes row ids: UUIDv7 text that is unique in a metadata store, follows the order of the rows, and is reproducible.

    xxxxxxxx-xxxx-7ooo-yyyy-yyyyyyyyyyyy
    48 bits  the run's own millisecond, which the store assigns only once
    12 bits  which step of the run made the row: 0 for input rows, else the operation's rank
    62 bits  which row of that step: its position in the data, or a number made of the group's key

Nothing is random and nothing depends on how Spark splits the work, so a row has the same id in a retry, a second output
or a replay.

Ids are SQL text for `rows.system.select_typed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallybook.rows import sql

POSITION = sql.internal("position")
"""The internal column that numbers loaded rows in the order of the data, with numbers below 2^62."""

MAX_STEPS = 2**12 - 1
_TIE_BITS = 12
_HASH_MASK = 2**50 - 1


def hash_of(keys: Sequence[str]) -> str:
    """Returns SQL for a hash of a group's key; two keys may have the same hash."""
    return f"xxhash64({', '.join(map(sql.name, keys))})"


@dataclass(frozen=True)
class RowIds:
    """Makes the ids of one run."""

    epoch_ms: int
    ranks: Mapping[int, int]
    """The rank of each operation by its seq; input rows have seq 0 and rank 0."""

    def of_rows(self, seq: int) -> str:
        """Returns SQL for the ids of rows that operation `seq` loads, by their POSITION."""
        return self._id(seq, sql.name(POSITION))

    def of_groups(self, seq: int, keys: Sequence[str]) -> str:
        """Returns SQL for the ids of rows that operation `seq` makes, one for each group.

        Only the key decides the number of a group: fifty bits of its hash, and its rank among the groups with the same
        hash, so that two keys never get the same number.
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
