"""A store knows workspaces: the keys of definitions, projects, periods and registrations begin with one.

Rows that are there already get a workspace without a name. The first workspace that recorded them takes it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_KEYS = {
    "definitions": ["workspace_id", "kind", "id", "version"],
    "projects": ["workspace_id", "project_id"],
    "periods": ["workspace_id", "calendar_id", "identifier"],
    "registrations": ["workspace_id", "dataset_id", "version"],
}
_APPEND_ONLY = ("definitions", "registrations")
_NAMES = {"fk": "%(table_name)s_%(column_0_name)s_fkey", "pk": "%(table_name)s_pkey"}
"""The names that PostgreSQL gave the constraints; in SQLite they have none."""


def upgrade() -> None:
    op.create_table(
        "workspaces",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.Text),
        sa.Column("name_key", sa.Text, unique=True),
        sa.Column("contents", sa.JSON),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "workspace_folders",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("root", sa.Text, primary_key=True),
        sa.Column("workspace_id", sa.String(36), sa.ForeignKey("workspaces.id"), primary_key=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )
    unnamed = _unnamed_workspace()
    with op.batch_alter_table("runs", naming_convention=_NAMES) as runs:
        runs.drop_constraint("runs_project_id_fkey", type_="foreignkey")
    for table, key in _KEYS.items():
        with op.batch_alter_table(table, naming_convention=_NAMES) as changed:
            changed.add_column(sa.Column("workspace_id", sa.String(36), nullable=False, server_default=unnamed))
            changed.drop_constraint(f"{table}_pkey", type_="primary")
            changed.create_primary_key(f"{table}_pkey", key)
            changed.create_foreign_key(f"{table}_workspace_id_fkey", "workspaces", ["workspace_id"], ["id"])
        _without_default(table)
    _change_runs(unnamed)
    if op.get_bind().dialect.name == "sqlite":
        _refuse_changes()


def _unnamed_workspace() -> str:
    """Returns the id of the workspace for the rows that are there; it is added only if there are some."""
    unnamed, connection = str(uuid4()), op.get_bind()
    if any(connection.execute(sa.text(f"SELECT 1 FROM {table} LIMIT 1")).first() for table in (*_KEYS, "runs")):
        made = {"id": unnamed, "at": datetime.now(UTC).replace(tzinfo=None)}
        insert = sa.text("INSERT INTO workspaces (id, created_at) VALUES (:id, :at)")
        connection.execute(insert.bindparams(sa.bindparam("at", type_=sa.DateTime(timezone=True))), made)
    return unnamed


def _change_runs(unnamed: str) -> None:
    op.drop_index("one_active_run", table_name="runs")
    with op.batch_alter_table("runs", naming_convention=_NAMES) as runs:
        runs.add_column(sa.Column("workspace_id", sa.String(36), nullable=False, server_default=unnamed))
        key = ["workspace_id", "project_id"]
        runs.create_foreign_key("runs_workspace_id_project_id_fkey", "projects", key, key)
    _without_default("runs")
    active = sa.text("status IN ('queued', 'running')")
    columns = ["workspace_id", "project_id", "period"]
    op.create_index("one_active_run", "runs", columns, unique=True, sqlite_where=active, postgresql_where=active)


def _without_default(table: str) -> None:
    with op.batch_alter_table(table) as changed:
        changed.alter_column("workspace_id", server_default=None)


def _refuse_changes() -> None:
    """Adds the triggers again: SQLite rebuilds a table to change its key, and the triggers are lost."""
    for table in _APPEND_ONLY:
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} are never changed'); END"
            )
