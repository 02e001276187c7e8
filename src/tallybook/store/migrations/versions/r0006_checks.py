"""A run keeps the results of its checks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "check_results",
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("unit", sa.String(20), nullable=False),
        sa.Column("tested", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("on_failure", sa.String(20), nullable=False),
        sa.Column("examples", sa.JSON, nullable=False),
    )
