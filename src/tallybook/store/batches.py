"""Records batches: what was asked for, and the run of each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from tallybook.errors import fail
from tallybook.model.batch import Batch, BatchItem, ItemStatus
from tallybook.model.state import Json
from tallybook.store.active import current_owner, is_alive
from tallybook.store.database import Database, now
from tallybook.store.tables import BATCH_ITEMS, BATCHES


class Batches(Database):
    """Creates, continues and reads batches of one workspace."""

    def create_batch(self, items: Sequence[tuple[str, str]], options: Json) -> Batch:
        """Records what was asked for: (project, period) in order, before anything runs."""
        batch_id = str(uuid4())
        rows = [
            {"batch_id": batch_id, "number": number, "project_id": project, "period": period, "status": "pending"}
            for number, (project, period) in enumerate(items, start=1)
        ]
        with self._write() as connection:
            values = {"id": batch_id, "workspace_id": self.workspace_id, "options": options, "created_at": now()}
            connection.execute(sa.insert(BATCHES).values(values | {"owner": current_owner().model_dump()}))
            connection.execute(sa.insert(BATCH_ITEMS), rows)
        return self.batch(batch_id)

    def continue_batch(self, batch_id: str) -> Batch:
        """Makes this process the one that executes a batch. Raises ConcurrentRun if another one still does."""
        with self._write() as connection:
            batch = self._batch(connection, batch_id)
            moment = self._clock(connection)
            if batch.owner != current_owner() and is_alive(batch.owner, batch.created_at, moment):
                raise fail(
                    "ConcurrentRun",
                    f"batch {batch.id} is being executed by {batch.owner}",
                    hint="wait until it ends, or interrupt it",
                )
            change = sa.update(BATCHES).where(BATCHES.c.id == batch.id).values(owner=current_owner().model_dump())
            connection.execute(change)
            return batch

    def change_item(
        self, batch: Batch, number: int, status: ItemStatus, *, reason: str | None = None, run_id: str | None = None
    ) -> None:
        """Records how far an item is, and its run if there is one."""
        values: dict[str, Any] = {"status": status, "reason": reason} | ({"run_id": run_id} if run_id else {})
        change = sa.update(BATCH_ITEMS).where(BATCH_ITEMS.c.batch_id == batch.id, BATCH_ITEMS.c.number == number)
        with self._write() as connection:
            connection.execute(change.values(values))

    def batch(self, batch_id: str | None = None) -> Batch:
        """Returns one batch, by default the newest. Raises RunNotFound if there is none."""
        with self._read() as connection:
            return self._batch(connection, batch_id)

    def has_batch(self, batch_id: str) -> bool:
        """True if a batch of this workspace has the id."""
        query = sa.select(BATCHES.c.id).where(BATCHES.c.workspace_id == self.workspace_id, BATCHES.c.id == batch_id)
        with self._read() as connection:
            return connection.execute(query).first() is not None

    def _batch(self, connection: sa.Connection, batch_id: str | None) -> Batch:
        query = sa.select(BATCHES).where(BATCHES.c.workspace_id == self.workspace_id)
        if batch_id is not None:
            query = query.where(BATCHES.c.id == batch_id)
        row = connection.execute(query.order_by(BATCHES.c.created_at.desc()).limit(1)).mappings().first()
        if row is None:
            what = "no batch has run in this workspace" if batch_id is None else f"no batch has the id {batch_id}"
            hint = "`tallybook run PROJECT… --period 2026-01..2026-12` runs many projects and periods"
            raise fail("RunNotFound", what, hint=hint)
        items = sa.select(BATCH_ITEMS).where(BATCH_ITEMS.c.batch_id == row["id"]).order_by(BATCH_ITEMS.c.number)
        found = [dict(item) for item in connection.execute(items).mappings()]
        return Batch(
            id=row["id"],
            created_at=row["created_at"],
            options=row["options"],
            owner=row["owner"],
            items=tuple(BatchItem.model_validate({k: v for k, v in item.items() if k != "batch_id"}) for item in found),
        )
