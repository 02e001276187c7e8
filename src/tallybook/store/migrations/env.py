"""Run by Alembic: migrates on the connection it is handed, inside the transaction already open there."""

from __future__ import annotations

from alembic import context

from tallybook.store.tables import metadata

_attributes = context.config.attributes
context.configure(
    connection=_attributes["connection"],
    version_table=_attributes["version_table"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
