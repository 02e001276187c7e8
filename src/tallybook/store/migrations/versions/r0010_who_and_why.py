"""Who changed the state of a project or period, when and why; and who started a run, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("started_by", sa.Text))
    op.add_column("runs", sa.Column("reason", sa.Text))
    op.create_table(
        "state_changes",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("workspace_id", sa.String(36), sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("project_id", sa.Text),
        sa.Column("calendar_id", sa.Text),
        sa.Column("period", sa.Text),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.Text),
        sa.Column("reason", sa.Text),
    )
