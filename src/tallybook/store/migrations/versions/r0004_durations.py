"""Only outputs have a duration. What other operations had was the time of planning them, not what they cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("operation_results") as results:
        results.alter_column("duration_ms", existing_type=sa.BigInteger, nullable=True)
    op.execute("UPDATE operation_results SET duration_ms = NULL WHERE type <> 'output'")
