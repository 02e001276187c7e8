"""Runs keep their claim and the status their project had when they began."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("claim", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("project_status", sa.String(20), nullable=False, server_default="active"))
    op.execute("UPDATE runs SET claim = id_epoch_ms")
    op.execute("UPDATE runs SET project_status = 'draft' WHERE sandbox")
    with op.batch_alter_table("runs") as runs:
        runs.alter_column("claim", server_default=None)
        runs.alter_column("project_status", server_default=None)
