"""The tables of the metadata store as this version of the product knows them; `migrations/` makes them."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

metadata = sa.MetaData()


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A moment in UTC: SQLite forgets time zones, PostgreSQL answers in the session's."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment in the metadata store needs a time zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


_JSON = sa.JSON(none_as_null=True)

WORKSPACES = sa.Table(
    "workspaces",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text),
    sa.Column("name_key", sa.Text, unique=True),
    sa.Column("environment", sa.Text),
    sa.Column("contents", _JSON),
    sa.Column("created_at", UtcDateTime, nullable=False),
)
"""Each environment of a workspace is a row of its own, with states, versions and runs of its own. `name_key` is the
name and environment as they are compared, `contents` what the files defined when the workspace was added. A
workspace without a name holds the rows of a store from before it knew workspaces, until a workspace takes them."""


def _workspace_key() -> sa.Column[str]:
    return sa.Column("workspace_id", sa.ForeignKey("workspaces.id"), primary_key=True)


WORKSPACE_FOLDERS = sa.Table(
    "workspace_folders",
    metadata,
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("root", sa.Text, primary_key=True),
    _workspace_key(),
    sa.Column("since", UtcDateTime, nullable=False),
)
"""The folders that a workspace is used from. A folder can be several workspaces, one after another."""

DEFINITIONS = sa.Table(
    "definitions",
    metadata,
    _workspace_key(),
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("content_hash", sa.String(64), nullable=False),
    sa.Column("body", _JSON, nullable=False),
    sa.Column("status", sa.String(20)),
    sa.Column("created_at", UtcDateTime, nullable=False),
)

PROJECTS = sa.Table(
    "projects",
    metadata,
    _workspace_key(),
    sa.Column("project_id", sa.Text, primary_key=True),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("input_dataset_version", sa.Integer),
    sa.Column("reviewed_dataset_version", sa.Integer),
    sa.Column("conflicts", _JSON),
    sa.Column("active_version", sa.Integer),
    sa.Column("changed_at", UtcDateTime, nullable=False),
)

PERIODS = sa.Table(
    "periods",
    metadata,
    _workspace_key(),
    sa.Column("calendar_id", sa.Text, primary_key=True),
    sa.Column("identifier", sa.Text, primary_key=True),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("changed_at", UtcDateTime, nullable=False),
)

STATE_CHANGES = sa.Table(
    "state_changes",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("workspace_id", sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("project_id", sa.Text),
    sa.Column("calendar_id", sa.Text),
    sa.Column("period", sa.Text),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("version", sa.Integer),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("changed_by", sa.Text),
    sa.Column("reason", sa.Text),
)
"""Who changed the state of a project or a period, when and why."""

ID_CLOCK = sa.Table(
    "id_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_ms", sa.BigInteger, nullable=False),
)
"""One row: the last millisecond number given to a run."""

RUNS = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("workspace_id", sa.String(36), nullable=False),
    sa.Column("project_id", sa.Text, nullable=False),
    sa.Column("project_version", sa.Integer, nullable=False),
    sa.Column("project_status", sa.String(20), nullable=False),
    sa.Column("calendar_id", sa.Text, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("id_epoch_ms", sa.BigInteger, nullable=False, unique=True),
    sa.Column("claim", sa.BigInteger, nullable=False),
    sa.Column("run_timestamp", UtcDateTime, nullable=False),
    sa.Column("as_of", sa.Date, nullable=False),
    sa.Column("parameters", _JSON),
    sa.Column("environment", sa.Text),
    sa.Column("sandbox", sa.Boolean, nullable=False),
    sa.Column("reopen_reason", sa.Text),
    sa.Column("started_by", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("problem", _JSON),
    sa.Column("last_completed_operation", sa.Integer),
    sa.Column("owner_host", sa.Text, nullable=False),
    sa.Column("owner_pid", sa.Integer, nullable=False),
    sa.Column("owner_started", sa.Text, nullable=False),
    sa.Column("heartbeat_at", UtcDateTime, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    sa.ForeignKeyConstraint(["workspace_id", "project_id"], ["projects.workspace_id", "projects.project_id"]),
)
_ACTIVE = sa.text("status IN ('queued', 'running')")
sa.Index(
    "one_active_run",
    RUNS.c.workspace_id,
    RUNS.c.project_id,
    RUNS.c.period,
    unique=True,
    sqlite_where=_ACTIVE,
    postgresql_where=_ACTIVE,
)

SNAPSHOTS = sa.Table(
    "snapshots",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)

RUN_EVENTS = sa.Table(
    "run_events",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("run_id", sa.ForeignKey("runs.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("event", sa.String(20), nullable=False),
    sa.Column("detail", _JSON),
)

OPERATION_RESULTS = sa.Table(
    "operation_results",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("type", sa.String(20), nullable=False),
    sa.Column("rows_selected", sa.BigInteger),
    sa.Column("rows_added", sa.BigInteger),
    sa.Column("rows_deleted", sa.BigInteger),
    sa.Column("duration_ms", sa.BigInteger),
)

CHECK_RESULTS = sa.Table(
    "check_results",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("condition", sa.Text, nullable=False),
    sa.Column("unit", sa.String(20), nullable=False),
    sa.Column("tested", sa.BigInteger, nullable=False),
    sa.Column("failed", sa.BigInteger, nullable=False),
    sa.Column("on_failure", sa.String(20), nullable=False),
    sa.Column("examples", _JSON, nullable=False),
)

OUTPUT_RESULTS = sa.Table(
    "output_results",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Text, key="location", nullable=False),  # stores made so far have this name
    sa.Column("rows_written", sa.BigInteger),
    sa.Column("columns_written", _JSON, nullable=False),
    sa.Column("dataset_id", sa.Text),
    sa.Column("dataset_version", sa.Integer),
    sa.Column("write_duration_ms", sa.BigInteger),
    sa.Column("delta_version", sa.BigInteger),
    sa.Column("periods_replaced", _JSON),
    sa.Column("committed", sa.Boolean, nullable=False),
)

REGISTRATIONS = sa.Table(
    "registrations",
    metadata,
    _workspace_key(),
    sa.Column("dataset_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("run_id", sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("reads", _JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("run_id", "seq", name="one_registration_per_output"),
)

BATCHES = sa.Table(
    "batches",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("workspace_id", sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("options", _JSON, nullable=False),
    sa.Column("owner", _JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)
"""Many runs that one command asked for."""

BATCH_ITEMS = sa.Table(
    "batch_items",
    metadata,
    sa.Column("batch_id", sa.ForeignKey("batches.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("project_id", sa.Text, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("run_id", sa.ForeignKey("runs.id")),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text),
)
