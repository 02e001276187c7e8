BEGIN TRANSACTION;
CREATE TABLE batch_items (
	batch_id VARCHAR(36) NOT NULL,
	number INTEGER NOT NULL,
	project_id TEXT NOT NULL,
	period TEXT NOT NULL,
	run_id VARCHAR(36),
	status VARCHAR(20) NOT NULL,
	reason TEXT,
	FOREIGN KEY(batch_id) REFERENCES batches (id),
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (batch_id, number)
);
CREATE TABLE batches (
	id VARCHAR(36) NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	options JSON NOT NULL,
	owner JSON NOT NULL,
	created_at DATETIME NOT NULL,
	FOREIGN KEY(workspace_id) REFERENCES workspaces (id),
	PRIMARY KEY (id)
);
CREATE TABLE check_results (
	run_id VARCHAR(36) NOT NULL,
	seq INTEGER NOT NULL,
	name TEXT NOT NULL,
	condition TEXT NOT NULL,
	unit VARCHAR(20) NOT NULL,
	tested BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	on_failure VARCHAR(20) NOT NULL,
	examples JSON NOT NULL,
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (run_id, seq)
);
CREATE TABLE "definitions" (
	kind VARCHAR(20) NOT NULL,
	id TEXT NOT NULL,
	version INTEGER NOT NULL,
	content_hash VARCHAR(64) NOT NULL,
	body JSON NOT NULL,
	status VARCHAR(20),
	created_at DATETIME NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	CONSTRAINT definitions_pkey PRIMARY KEY (workspace_id, kind, id, version),
	CONSTRAINT definitions_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES workspaces (id)
);
CREATE TABLE id_clock (
	id INTEGER NOT NULL,
	last_ms BIGINT NOT NULL,
	PRIMARY KEY (id)
);
INSERT INTO "id_clock" VALUES(1,0);
CREATE TABLE "operation_results" (
	run_id VARCHAR(36) NOT NULL,
	seq INTEGER NOT NULL,
	name TEXT NOT NULL,
	type VARCHAR(20) NOT NULL,
	rows_selected BIGINT,
	rows_added BIGINT,
	rows_deleted BIGINT,
	duration_ms BIGINT,
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (run_id, seq)
);
CREATE TABLE output_results (
	run_id VARCHAR(36) NOT NULL,
	seq INTEGER NOT NULL,
	place TEXT NOT NULL,
	rows_written BIGINT,
	columns_written JSON NOT NULL,
	dataset_id TEXT,
	dataset_version INTEGER,
	write_duration_ms BIGINT,
	delta_version BIGINT,
	committed BOOLEAN NOT NULL, periods_replaced JSON,
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (run_id, seq)
);
CREATE TABLE "periods" (
	calendar_id TEXT NOT NULL,
	identifier TEXT NOT NULL,
	status VARCHAR(20) NOT NULL,
	changed_at DATETIME NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	CONSTRAINT periods_pkey PRIMARY KEY (workspace_id, calendar_id, identifier),
	CONSTRAINT periods_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES workspaces (id)
);
CREATE TABLE "projects" (
	project_id TEXT NOT NULL,
	status VARCHAR(20) NOT NULL,
	version INTEGER NOT NULL,
	input_dataset_version INTEGER,
	reviewed_dataset_version INTEGER,
	conflicts JSON,
	changed_at DATETIME NOT NULL,
	workspace_id VARCHAR(36) NOT NULL, active_version INTEGER,
	CONSTRAINT projects_pkey PRIMARY KEY (workspace_id, project_id),
	CONSTRAINT projects_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES workspaces (id)
);
CREATE TABLE "registrations" (
	dataset_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	run_id VARCHAR(36) NOT NULL,
	seq INTEGER NOT NULL,
	reads JSON NOT NULL,
	created_at DATETIME NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	CONSTRAINT one_registration_per_output UNIQUE (run_id, seq),
	CONSTRAINT registrations_pkey PRIMARY KEY (workspace_id, dataset_id, version),
	CONSTRAINT registrations_run_id_fkey FOREIGN KEY(run_id) REFERENCES runs (id),
	CONSTRAINT registrations_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES workspaces (id)
);
CREATE TABLE run_events (
	number INTEGER NOT NULL,
	run_id VARCHAR(36) NOT NULL,
	at DATETIME NOT NULL,
	attempt INTEGER NOT NULL,
	event VARCHAR(20) NOT NULL,
	detail JSON,
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (number)
);
CREATE TABLE "runs" (
	id VARCHAR(36) NOT NULL,
	project_id TEXT NOT NULL,
	project_version INTEGER NOT NULL,
	calendar_id TEXT NOT NULL,
	period TEXT NOT NULL,
	status VARCHAR(20) NOT NULL,
	attempt INTEGER NOT NULL,
	id_epoch_ms BIGINT NOT NULL,
	run_timestamp DATETIME NOT NULL,
	as_of DATE NOT NULL,
	sandbox BOOLEAN NOT NULL,
	reopen_reason TEXT,
	problem JSON,
	last_completed_operation INTEGER,
	owner_host TEXT NOT NULL,
	owner_pid INTEGER NOT NULL,
	owner_started TEXT NOT NULL,
	heartbeat_at DATETIME NOT NULL,
	created_at DATETIME NOT NULL,
	started_at DATETIME,
	finished_at DATETIME,
	claim BIGINT NOT NULL,
	project_status VARCHAR(20) NOT NULL,
	workspace_id VARCHAR(36) NOT NULL, parameters JSON, environment TEXT, started_by TEXT, reason TEXT,
	UNIQUE (id_epoch_ms),
	CONSTRAINT runs_pkey PRIMARY KEY (id),
	CONSTRAINT runs_workspace_id_project_id_fkey FOREIGN KEY(workspace_id, project_id) REFERENCES projects (workspace_id, project_id)
);
CREATE TABLE snapshots (
	run_id VARCHAR(36) NOT NULL,
	body TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	FOREIGN KEY(run_id) REFERENCES runs (id),
	PRIMARY KEY (run_id)
);
CREATE TABLE state_changes (
	number INTEGER NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	project_id TEXT,
	calendar_id TEXT,
	period TEXT,
	status VARCHAR(20) NOT NULL,
	version INTEGER,
	at DATETIME NOT NULL,
	changed_by TEXT,
	reason TEXT,
	FOREIGN KEY(workspace_id) REFERENCES workspaces (id),
	PRIMARY KEY (number)
);
CREATE TABLE tallybook_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT tallybook_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "tallybook_version" VALUES('0011');
CREATE TABLE workspace_folders (
	host TEXT NOT NULL,
	root TEXT NOT NULL,
	workspace_id VARCHAR(36) NOT NULL,
	since DATETIME NOT NULL,
	FOREIGN KEY(workspace_id) REFERENCES workspaces (id),
	PRIMARY KEY (host, root, workspace_id)
);
CREATE TABLE workspaces (
	id VARCHAR(36) NOT NULL,
	name TEXT,
	name_key TEXT,
	contents JSON,
	created_at DATETIME NOT NULL, environment TEXT,
	UNIQUE (name_key),
	PRIMARY KEY (id)
);
CREATE INDEX ix_run_events_run_id ON run_events (run_id);
CREATE TRIGGER snapshots_no_update BEFORE UPDATE ON snapshots BEGIN SELECT RAISE(ABORT, 'snapshots are never changed'); END;
CREATE TRIGGER snapshots_no_delete BEFORE DELETE ON snapshots BEGIN SELECT RAISE(ABORT, 'snapshots are never changed'); END;
CREATE TRIGGER run_events_no_update BEFORE UPDATE ON run_events BEGIN SELECT RAISE(ABORT, 'run_events are never changed'); END;
CREATE TRIGGER run_events_no_delete BEFORE DELETE ON run_events BEGIN SELECT RAISE(ABORT, 'run_events are never changed'); END;
CREATE UNIQUE INDEX one_active_run ON runs (workspace_id, project_id, period) WHERE status IN ('queued', 'running');
CREATE TRIGGER definitions_no_update BEFORE UPDATE ON definitions BEGIN SELECT RAISE(ABORT, 'definitions are never changed'); END;
CREATE TRIGGER definitions_no_delete BEFORE DELETE ON definitions BEGIN SELECT RAISE(ABORT, 'definitions are never changed'); END;
CREATE TRIGGER registrations_no_update BEFORE UPDATE ON registrations BEGIN SELECT RAISE(ABORT, 'registrations are never changed'); END;
CREATE TRIGGER registrations_no_delete BEFORE DELETE ON registrations BEGIN SELECT RAISE(ABORT, 'registrations are never changed'); END;
COMMIT;
