"""A workspace has environments, each with state of its own, and a run says which it belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workspaces", sa.Column("environment", sa.Text))
    op.add_column("runs", sa.Column("environment", sa.Text))
