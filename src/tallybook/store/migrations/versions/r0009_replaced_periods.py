"""An output keeps the periods whose rows it replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("output_results", sa.Column("periods_replaced", sa.JSON))
