"""A project keeps the version that was activated last: a draft that was active before is not a new one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("active_version", sa.Integer))
    op.execute("UPDATE projects SET active_version = version WHERE status <> 'draft'")
    op.execute(
        "UPDATE projects SET active_version = (SELECT MAX(runs.project_version) FROM runs"
        " WHERE runs.workspace_id = projects.workspace_id AND runs.project_id = projects.project_id"
        " AND runs.project_status = 'active') WHERE status = 'draft'"
    )
