"""What a writer is told about an output besides its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tallybook.storage.guard import UNGUARDED, Guard
from tallybook.storage.ownership import output_name

WriteMode = Literal["overwrite", "append", "error"]


@dataclass(frozen=True)
class Output:
    """An output of a run. Writing it again replaces what it has written before."""

    run_id: str
    seq: int
    """The operation that writes it."""
    mode: WriteMode = "overwrite"
    guard: Guard = UNGUARDED
    """Asked directly before the rows become visible."""

    @property
    def name(self) -> str:
        """What the names of its files and folders begin with."""
        return output_name(self.run_id, self.seq)
