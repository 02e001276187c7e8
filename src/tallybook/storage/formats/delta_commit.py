"""Writes Delta tables without a jar: Spark writes Parquet files below the table, delta-rs commits them in one step.

Readers do not see files that no commit names. A killed attempt leaves such files in a folder named after the run and
the operation; the next attempt of the same output removes them, and an attempt that is refused removes its own. Each
attempt has its own subfolder, because Spark may still be writing after its driver has died. A commit has two
application transactions: the run with its operation, so that an output is never committed twice; and the output's name
with the run's claim, so that a run that was declared dead cannot commit after its successor.

A commit that replaces periods removes the files with their rows. Where a removed file also has rows of other periods,
Spark writes those into new files first, which the same commit adds.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import create_table_with_add_actions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tallybook.errors import TallybookError, fail
from tallybook.exit_codes import BUSY
from tallybook.model.location import Location
from tallybook.storage.credentials import delta_options
from tallybook.storage.failure import could_not_write
from tallybook.storage.formats.delta_changes import OPERATION, OUTPUT_ROWS, PERIODS, RUN, Changes
from tallybook.storage.formats.delta_log import ADDED_ROWS
from tallybook.storage.formats.delta_table import open_table, table_root, table_schema
from tallybook.storage.output import Guard, Output, foreign_to_delta, in_the_way, other_partitions
from tallybook.storage.stage import Written, clear, columns_text

_ATTEMPTS = 30
_FOREVER = "interval 36500 days"
_KEEP_VERSIONS = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": _FOREVER,
    "delta.deletedFileRetentionDuration": _FOREVER,
}
"""A registered output is read at its version for ever, so new tables keep all versions."""
_WRITER_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_MISREAD = re.compile(r"[#?\\]|%[0-9A-Fa-f]{2}")
_PLAIN_WRITER = 2
_LISTED_WRITER = 7


def write_delta(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
    """Writes the rows as one commit. A retry after the commit writes nothing and returns what was committed."""
    location = replace(location, version=None)
    try:
        return _write(spark, frame, location, output)
    except ConnectionError:  # the JVM has ended; nothing is wrong with the destination
        raise
    except OSError as error:
        raise could_not_write(location, error) from error


def _write(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
    run_id, seq, mode, guard = output.run_id, output.seq, output.mode, output.guard

    def look() -> DeltaTable | Written | None:
        """Returns the current table, or what this output has already written there."""
        table = open_table(location)
        done = _committed(location, table, tuple(frame.columns), run_id, seq) if table is not None else None
        if table is not None and done is None:
            _refuse(location, table, frame.schema, output)
            _refuse_superseded(location, table, guard, mode)
        return done or table

    _refuse_misread(location)
    if isinstance(done := look(), Written):
        return done
    clear(spark, location, f"{table_root(location)}/{output.name}")
    changes = Changes.staged(spark, frame, location, output)
    conflict: DeltaError | None = None
    was_tried = False
    for attempt in range(_ATTEMPTS + 1):
        try:
            table = look()
            if isinstance(table, Written):
                return table
            if attempt == _ATTEMPTS or (conflict is not None and table is None):
                break
            changes.look(table)
            guard.check()
        except TallybookError:
            if not was_tried:  # so no commit can name these files
                changes.clear()
            raise
        was_tried = True
        conflict = _commit(location, table, frame.schema, changes)
    message = f"{location} could not be committed: {conflict}"
    raise fail("WriteFailed", message, hint="run again when nothing else writes to it", cause=BUSY) from conflict


def _refuse_superseded(location: Location, table: DeltaTable, guard: Guard, mode: str) -> None:
    """Raises a problem if a run with a later claim has written the same output, or a rival has appended to the table.

    The check is made on the version that is then committed to. A commit in between makes this one fail, however long
    this process was stopped.
    """
    if (table.transaction_version(guard.output) or 0) > guard.claim:
        raise fail(
            "RunSuperseded",
            f"a later run of the same project and period has written {location} since this run began",
            hint="the rows of this run are not written: it was declared dead and replaced, or another workspace writes "
            "to the same table; if these rows are the right ones, run it again",
        )
    for rival in guard.rivals if mode == "append" else ():
        if table.transaction_version(rival) is not None:
            guard.refuse_rival(rival, str(location))


def _commit(location: Location, table: DeltaTable | None, schema: T.StructType, changes: Changes) -> DeltaError | None:
    """Tries once to commit; returns the conflict if the table has changed since it was opened. delta-rs must not retry
    by itself: an overwrite removes the files of the version it saw, so after a conflict the table is opened again."""
    no_cleanup = PostCommitHookProperties(cleanup_expired_logs=False)
    try:
        if table is None:
            create_table_with_add_actions(
                table_root(location),
                _delta_schema(schema),
                changes.add_actions,
                partition_by=list(changes.output.partition_by),
                configuration=_KEEP_VERSIONS,
                commit_properties=changes.properties,
                post_commithook_properties=no_cleanup,
                storage_options=delta_options(location),
            )
        else:
            table.create_write_transaction(
                [*changes.add_actions, *changes.remove_actions],
                "overwrite" if changes.output.mode == "overwrite" else "append",
                _delta_schema(schema),
                partition_by=table.metadata().partition_columns,
                commit_properties=changes.properties,
                post_commithook_properties=no_cleanup,
            )
    except DeltaError as error:
        return error
    return None


def _committed(
    location: Location, table: DeltaTable, columns: tuple[str, ...], run_id: str, seq: int
) -> Written | None:
    """Returns what this output has already committed, from the log; None if it has committed nothing."""
    if (table.transaction_version(run_id) or 0) < seq:
        return None
    for limit in (20, None):
        for entry in table.history(limit):
            if (entry.get(RUN), entry.get(OPERATION)) == (run_id, seq):
                rows = int(entry.get(OUTPUT_ROWS, entry[ADDED_ROWS]))
                version = _version_of(location, table.version(), run_id, seq)
                return Written(rows, columns, version, tuple(entry.get(PERIODS) or ()))
    raise fail("WriteFailed", f"run {run_id} has already written {location}, but the log no longer has its commit")


def _version_of(location: Location, newest: int, run_id: str, seq: int) -> int:
    """Returns the version that the output made, which is the first one with its transaction.

    The history cannot be used: delta-rs lists it from the newest commit, but counts from the version at which the table
    was loaded, so its numbers are wrong by every commit that another run has made in between.
    """
    options = delta_options(location)

    def has_it(version: int) -> bool:
        try:
            table = DeltaTable(table_root(location), version=version, storage_options=options)
            written = table.transaction_version(run_id)
        except DeltaError:
            return False  # the version is no longer kept, so it is older than this run
        return (written or 0) >= seq

    if newest == 0 or not has_it(newest - 1):
        return newest
    return bisect_left(range(newest), True, key=has_it)


def _delta_schema(schema: T.StructType) -> Schema:
    """Returns the schema of a Delta table. Every column may be NULL, so that a later append can have NULL in it."""
    fields = [{**field.jsonValue(), "nullable": True, "metadata": {}} for field in schema.fields]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def check_folder(location: Location) -> None:
    """Raises WriteFailed if the location is a local folder that contains other files and no table.

    A commit changes and removes no file, so other files may be in the folder of a table.
    """
    local = location.local_path
    if local is None or any(Path(local, "_delta_log").glob("*.*")):
        return
    if Path(local).is_file():
        raise fail("WriteFailed", f"{local} is a file, and the output would be a folder")
    if foreign := foreign_to_delta(Path(local)):
        raise in_the_way(Path(local), foreign)


def _refuse_misread(location: Location) -> None:
    """Raises WriteFailed for a local path that delta-rs writes unchanged, but reads as a url."""
    misread = _MISREAD.search(table_root(location)) if location.local_path is not None else None
    if misread:
        raise fail(
            "WriteFailed",
            f"{location} cannot be a Delta table: delta-rs cannot reopen it with '{misread[0]}' in its path",
            hint="rename the folder, or give the datasource an absolute `path_prefix` elsewhere",
        )


def _refuse(location: Location, table: DeltaTable, schema: T.StructType, output: Output) -> None:
    """Raises WriteFailed for a table that this output may not, or cannot, change."""
    mode = output.mode
    if mode == "error":
        raise fail(
            "WriteFailed",
            f"{location} already exists",
            hint="the output has `mode: error`; use `overwrite` or `append` to write it anyway",
        )
    protocol, metadata = table.protocol(), table.metadata()
    needs = set(protocol.writer_features or ()) - _WRITER_FEATURES
    if _PLAIN_WRITER < protocol.min_writer_version < _LISTED_WRITER:
        needs.add(f"writer version {protocol.min_writer_version}")
    if needs:
        raise fail("WriteFailed", f"{location} uses features that cannot be written yet: {', '.join(sorted(needs))}")
    if set(metadata.partition_columns) != set(output.partition_by):
        raise other_partitions(str(location), metadata.partition_columns, output.partition_by)
    existing = table_schema(table)
    keeps_rows = mode in ("append", "replace_period")
    if keeps_rows and {f.name: f.dataType for f in existing} != {f.name: f.dataType for f in schema}:
        raise fail(
            "WriteFailed",
            f"{location} has the columns {columns_text(existing)}; the output has {columns_text(schema)}",
            hint=f"{mode} needs the same columns, because other rows stay in the table; write to another table, or "
            "replace all rows with mode overwrite",
        )
