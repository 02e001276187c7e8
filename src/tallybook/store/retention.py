"""What a cleanup must know of all workspaces of a store: where runs wrote, what they read, what is registered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from tallybook.model.run import Run
from tallybook.model.state import Json
from tallybook.store.active import run_from_row
from tallybook.store.database import Database
from tallybook.store.tables import OUTPUT_RESULTS, REGISTRATIONS, RUNS, SNAPSHOTS


@dataclass(frozen=True)
class RecordedRun:
    """A run of any workspace of the store, with its locations as the snapshot has them."""

    run: Run
    reads: tuple[Json, ...] = ()
    destinations: Mapping[int, Json] = field(default_factory=dict)
    """By the seq of the output."""
    written_versions: Mapping[int, int] = field(default_factory=dict)
    """The versions of tables that its outputs made, by the seq of the output."""


class Retention(Database):
    """Reads the records of all workspaces of the store."""

    def recorded_runs(self) -> Iterator[RecordedRun]:
        """Yields all runs, oldest first."""
        with self._read() as connection:
            versions: dict[str, dict[int, int]] = {}
            made = OUTPUT_RESULTS.c["run_id", "seq", "delta_version"]
            for run_id, seq, version in connection.execute(sa.select(*made).where(made["delta_version"].is_not(None))):
                versions.setdefault(run_id, {})[seq] = version
            for row in connection.execute(sa.select(RUNS).order_by(RUNS.c.id_epoch_ms)).all():
                run = run_from_row(row)
                body = connection.execute(sa.select(SNAPSHOTS.c.body).where(SNAPSHOTS.c.run_id == run.id)).scalar()
                snapshot = json.loads(body) if body is not None else {}
                tables = snapshot.get("resolver_snapshots", ())
                reads = tuple(location for table in tables for location in table["locations"])
                places = {int(seq): location for seq, location in snapshot.get("destinations", {}).items()}
                yield RecordedRun(run, reads, places, versions.get(run.id, {}))

    def registered_locations(self) -> tuple[Json, ...]:
        """Returns where the rows of all registered versions are."""
        with self._read() as connection:
            return tuple(connection.execute(sa.select(REGISTRATIONS.c.reads)).scalars())
