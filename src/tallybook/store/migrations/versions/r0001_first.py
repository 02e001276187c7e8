"""The first tables.

Written out rather than taken from `tables.py`: a migration stays what it was when the tables move on.
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_APPEND_ONLY = ("definitions", "snapshots", "registrations", "run_events")


def upgrade() -> None:
    _definition_tables()
    _run_tables()
    _result_tables()
    op.execute("INSERT INTO id_clock (id, last_ms) VALUES (1, 0)")
    _refuse_changes()


def _moment(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _definition_tables() -> None:
    op.create_table(
        "definitions",
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("status", sa.String(20)),
        _moment("created_at"),
    )
    op.create_table(
        "projects",
        sa.Column("project_id", sa.Text, primary_key=True),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("input_dataset_version", sa.Integer),
        sa.Column("reviewed_dataset_version", sa.Integer),
        sa.Column("conflicts", sa.JSON),
        _moment("changed_at"),
    )
    op.create_table(
        "periods",
        sa.Column("calendar_id", sa.Text, primary_key=True),
        sa.Column("identifier", sa.Text, primary_key=True),
        sa.Column("status", sa.String(20), nullable=False),
        _moment("changed_at"),
    )


def _run_tables() -> None:
    op.create_table(
        "id_clock",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("project_id", sa.Text, sa.ForeignKey("projects.project_id"), nullable=False),
        sa.Column("project_version", sa.Integer, nullable=False),
        sa.Column("calendar_id", sa.Text, nullable=False),
        sa.Column("period", sa.Text, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("id_epoch_ms", sa.BigInteger, nullable=False, unique=True),
        _moment("run_timestamp"),
        sa.Column("as_of", sa.Date, nullable=False),
        sa.Column("sandbox", sa.Boolean, nullable=False),
        sa.Column("reopen_reason", sa.Text),
        sa.Column("problem", sa.JSON),
        sa.Column("last_completed_operation", sa.Integer),
        sa.Column("owner_host", sa.Text, nullable=False),
        sa.Column("owner_pid", sa.Integer, nullable=False),
        sa.Column("owner_started", sa.Text, nullable=False),
        _moment("heartbeat_at"),
        _moment("created_at"),
        _moment("started_at", nullable=True),
        _moment("finished_at", nullable=True),
    )
    active = sa.text("status IN ('queued', 'running')")
    op.create_index(
        "one_active_run",
        "runs",
        ["project_id", "period"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )
    op.create_table(
        "snapshots",
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        _moment("created_at"),
    )
    op.create_table(
        "run_events",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), nullable=False, index=True),
        _moment("at"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("detail", sa.JSON),
    )


def _result_tables() -> None:
    op.create_table(
        "operation_results",
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("rows_selected", sa.BigInteger),
        sa.Column("rows_added", sa.BigInteger),
        sa.Column("rows_deleted", sa.BigInteger),
        sa.Column("duration_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "output_results",
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("rows_written", sa.BigInteger),
        sa.Column("columns_written", sa.JSON, nullable=False),
        sa.Column("dataset_id", sa.Text),
        sa.Column("dataset_version", sa.Integer),
        sa.Column("write_duration_ms", sa.BigInteger),
        sa.Column("delta_version", sa.BigInteger),
        sa.Column("committed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "registrations",
        sa.Column("dataset_id", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.String(36), sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("reads", sa.JSON, nullable=False),
        _moment("created_at"),
        sa.UniqueConstraint("run_id", "seq", name="one_registration_per_output"),
    )


def _refuse_changes() -> None:
    """What was written once stays, whoever asks: the database itself refuses to change or delete it."""
    if op.get_bind().dialect.name == "sqlite":
        for table in _APPEND_ONLY:
            for action in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} are never changed'); END"
                )
        return
    op.execute(
        "CREATE FUNCTION tallybook_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% are never changed', TG_TABLE_NAME; END $$"
    )
    for table in _APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION tallybook_refuse_change()"
        )
