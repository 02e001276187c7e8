"""The marks of outputs in a database: a table that says which run wrote which rows, in the transaction that wrote them.

A mark makes a write happen once: a retry after a crash finds it. It also keeps a run that was declared dead from
writing after its successor, and tells rows that an output wrote from rows of others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tallybook.errors import fail
from tallybook.model.location import Location
from tallybook.storage.output import Output

MARKS = "tallybook_writes"
"""The table of the marks, in the schema of the tables that are written."""


@dataclass(frozen=True)
class Marks:
    """The marks of one table. `sql` is the quoted name of the table of the marks, `name` the table that is written."""

    cursor: Any
    sql: str
    name: str

    def create(self) -> None:
        """Creates the table of the marks, unless it exists."""
        self.cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {self.sql} ("
            "table_name text NOT NULL, run_id text NOT NULL, seq bigint NOT NULL,"
            " output text NOT NULL, claim bigint NOT NULL, mode text NOT NULL, periods text NOT NULL,"
            " owns_table bigint NOT NULL, row_count bigint NOT NULL, written_at text NOT NULL,"
            " PRIMARY KEY (table_name, run_id, seq))"
        )

    def rows_of(self, output: Output) -> int | None:
        """Returns how many rows an output has written; None if it has written none."""
        found = self._all("SELECT row_count FROM", "run_id = $2 AND seq = $3", output.run_id, output.seq)
        return found[0][0] if found else None

    @property
    def owns_table(self) -> bool:
        """True if outputs wrote all rows of the table, as far as the marks know."""
        return bool(self._all("SELECT 1 FROM", "owns_table = 1"))

    @property
    def periods(self) -> set[str]:
        """The periods whose rows outputs have written."""
        found = self._all("SELECT periods FROM", "periods <> '[]'")
        return {period for (periods,) in found for period in json.loads(periods)}

    def periods_of(self, output: Output) -> tuple[str, ...]:
        """Returns the periods that an output has replaced."""
        found = self._all("SELECT periods FROM", "run_id = $2 AND seq = $3", output.run_id, output.seq)
        return tuple(json.loads(found[0][0])) if found else ()

    def refuse_superseded(self, output: Output, location: Location) -> None:
        """Raises a problem if a run with a later claim has written the output, or a rival has appended to the table."""
        guard = output.guard
        later = self._all("SELECT 1 FROM", "output = $2 AND output <> '' AND claim > $3", guard.output, guard.claim)
        if later:
            raise fail(
                "RunSuperseded",
                f"a later run of the same project and period has written {location} since this run began",
                hint="the rows of this run are not written: it was declared dead and replaced, or another workspace "
                "writes to the same table; if these rows are the right ones, run it again",
            )
        for rival in guard.rivals if output.mode == "append" else ():
            if self._all("SELECT 1 FROM", "run_id = $2", rival):
                guard.refuse_rival(rival, str(location))

    def add(self, output: Output, rows: int, *, owns_table: bool, periods: Sequence[str] = ()) -> None:
        """Adds the mark of an output. It counts when the transaction is committed."""
        guard = output.guard
        values = (
            self.name,
            output.run_id,
            output.seq,
            guard.output,
            guard.claim,
            output.mode,
            json.dumps(list(periods)),
            int(owns_table),
            rows,
            datetime.now(UTC).isoformat(),
        )
        places = ", ".join(f"${index}" for index in range(1, len(values) + 1))
        self.cursor.execute(f"INSERT INTO {self.sql} VALUES ({places})", values)

    def _all(self, select: str, condition: str, *values: Any) -> list[tuple[Any, ...]]:
        self.cursor.execute(f"{select} {self.sql} WHERE table_name = $1 AND {condition}", (self.name, *values))
        return list(self.cursor.fetchall())
