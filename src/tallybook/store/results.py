"""Records what a run does: results of its operations and outputs, and outputs that become versions of datasets.

Directly before each publish, commit and registration it checks that the run may still write.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from tallybook.errors import RunError, StoreError, fail
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run
from tallybook.model.state import Json, Registration
from tallybook.project.lifecycle import check_period_runs
from tallybook.store.active import get_run, owned_run
from tallybook.store.database import Database, now
from tallybook.store.definitions import add_version, registration_of
from tallybook.store.lifecycle import changed_statuses, check_project_as_begun
from tallybook.store.tables import CHECK_RESULTS, OPERATION_RESULTS, OUTPUT_RESULTS, REGISTRATIONS, RUNS, WORKSPACES


@dataclass(frozen=True)
class LaterWrite:
    """The output that wrote to a location last, after another one."""

    run_id: str
    seq: int
    workspace: str | None
    """The name of the workspace, with its environment, if it is not the one the store is opened for."""


class Results(Database):
    """Records results while the run is executed. A retry overwrites the results of earlier attempts."""

    def record_operations(self, run: Run, *results: OperationResult) -> None:
        """Records operations as done. The last of them becomes the last completed operation of the run."""
        with self._write() as connection:
            _running(connection, run)
            done = OPERATION_RESULTS.c
            seqs = [result.seq for result in results]
            connection.execute(sa.delete(OPERATION_RESULTS).where(done.run_id == run.id, done.seq.in_(seqs)))
            rows = [{"run_id": run.id, **result.model_dump()} for result in results]
            connection.execute(sa.insert(OPERATION_RESULTS), rows)
            change = sa.update(RUNS).where(RUNS.c.id == run.id)
            connection.execute(change.values(last_completed_operation=results[-1].seq))

    def record_check(self, run: Run, result: CheckResult) -> None:
        """Records what a check found, whether it passed or not."""
        with self._write() as connection:
            _running(connection, run)
            _put(connection, CHECK_RESULTS, run, result.seq, result.model_dump(mode="json"))

    def record_output(self, run: Run, result: OutputResult) -> None:
        """Records what is known of an output so far. A committed output stays committed."""
        with self._write() as connection:
            _running(connection, run)
            before = _output(connection, run.id, result.seq)
            if before is not None and before.committed and not result.committed:
                raise StoreError(f"output {result.seq} of run {run.id} is already committed")
            _put(connection, OUTPUT_RESULTS, run, result.seq, result.model_dump(mode="json"))

    def register_dataset(self, name: str, body: Json, run: Run, seq: int, reads: Json) -> Registration:
        """Registers an output of a run as the next version of the dataset `name`. `reads` is the location where these
        rows stay readable. An output is registered once, even if its run is retried. A run that may no longer write is
        refused."""
        with self._write() as connection:
            _check_may_write(connection, run)
            done = registration_of(
                connection, self.workspace_id, REGISTRATIONS.c.run_id == run.id, REGISTRATIONS.c.seq == seq
            )
            if done is not None:
                return _same_dataset(done, name)
            version = add_version(connection, self.workspace_id, "dataset", name, body)
            values = {
                "dataset_id": name,
                "version": version,
                "run_id": run.id,
                "seq": seq,
                "reads": reads,
                "created_at": now(),
            }
            connection.execute(sa.insert(REGISTRATIONS).values(workspace_id=self.workspace_id, **values))
            of_run = {"project_id": run.project_id, "calendar_id": run.calendar_id, "period": run.period}
            return Registration.model_validate(values | of_run)

    def check_may_write(self, run: Run) -> None:
        """Raises RunError unless the caller still owns the run, and its period and project still allow it to write."""
        with self._read() as connection:
            _check_may_write(connection, run)

    def operation_results(self, run_id: str) -> tuple[OperationResult, ...]:
        """Returns the results of a run, ordered by seq."""
        with self._read() as connection:
            rows = connection.execute(_of_run(OPERATION_RESULTS, run_id))
            return tuple(OperationResult.model_validate(_values(row)) for row in rows)

    def check_results(self, run_id: str) -> tuple[CheckResult, ...]:
        """Returns the results of a run, ordered by seq."""
        with self._read() as connection:
            rows = connection.execute(_of_run(CHECK_RESULTS, run_id))
            return tuple(CheckResult.model_validate(_values(row), strict=False) for row in rows)

    def output_results(self, run_id: str) -> tuple[OutputResult, ...]:
        """Returns the results of a run, ordered by seq."""
        with self._read() as connection:
            return tuple(_output_result(row) for row in connection.execute(_of_run(OUTPUT_RESULTS, run_id)))

    def rows_written(self, run_ids: Collection[str]) -> dict[str, int]:
        """Returns how many rows the outputs of each run wrote, by its id; a run that has finished no output is left
        out."""
        query = sa.select(OUTPUT_RESULTS.c.run_id, sa.func.sum(OUTPUT_RESULTS.c.rows_written))
        query = query.where(OUTPUT_RESULTS.c.committed, OUTPUT_RESULTS.c.run_id.in_(run_ids))
        with self._read() as connection:
            return {
                run_id: int(rows or 0) for run_id, rows in connection.execute(query.group_by(OUTPUT_RESULTS.c.run_id))
            }

    def written_later(self, run: Run, output: OutputResult) -> LaterWrite | None:
        """Returns the last output that this run or another one wrote to the same location after an output of a finished
        run. Runs of all workspaces count: they may share the location."""
        same_run = sa.and_(RUNS.c.id == run.id, OUTPUT_RESULTS.c.seq > output.seq)
        unfinished = RUNS.c.finished_at.is_(None)
        other_run = sa.and_(RUNS.c.id != run.id, sa.or_(unfinished, RUNS.c.finished_at >= run.finished_at))
        query = (
            sa.select(RUNS.c.id, RUNS.c.workspace_id, OUTPUT_RESULTS.c.seq, *WORKSPACES.c["name", "environment"])
            .join_from(OUTPUT_RESULTS, RUNS)
            .join(WORKSPACES, WORKSPACES.c.id == RUNS.c.workspace_id)
            .where(OUTPUT_RESULTS.c.location == output.location, OUTPUT_RESULTS.c.committed, same_run | other_run)
            .order_by(RUNS.c.id_epoch_ms.desc(), OUTPUT_RESULTS.c.seq.desc())
        )
        with self._read() as connection:
            row = connection.execute(query.limit(1)).first()
        if row is None:
            return None
        name = row.name if row.environment is None else f"{row.name} ({row.environment})"
        return LaterWrite(row.id, row.seq, None if row.workspace_id == self.workspace_id else name)


def _running(connection: sa.Connection, run: Run) -> None:
    current = owned_run(connection, run)
    if current.status != "running":
        raise StoreError(f"run {run.id} is {current.status}, so it cannot report results")


def _of_run(table: sa.Table, run_id: str) -> sa.Select[Any]:
    columns = (column.label(column.key) for column in table.c)
    return sa.select(*columns).where(table.c.run_id == run_id).order_by(table.c.seq)


def _put(connection: sa.Connection, table: sa.Table, run: Run, seq: int, values: dict[str, Any]) -> None:
    change = sa.update(table).where(table.c.run_id == run.id, table.c.seq == seq).values(values)
    if connection.execute(change).rowcount == 0:
        connection.execute(sa.insert(table).values(run_id=run.id, **values))


def _output(connection: sa.Connection, run_id: str, seq: int) -> OutputResult | None:
    row = connection.execute(_of_run(OUTPUT_RESULTS, run_id).where(OUTPUT_RESULTS.c.seq == seq)).first()
    return None if row is None else _output_result(row)


def _output_result(row: sa.Row[Any]) -> OutputResult:
    values = _values(row)
    lists = {name: tuple(values[name] or ()) for name in ("columns_written", "periods_replaced")}
    return OutputResult.model_validate(values | lists)


def _values(row: sa.Row[Any]) -> dict[str, Any]:
    return {key: value for key, value in row._mapping.items() if key != "run_id"}


def _check_may_write(connection: sa.Connection, run: Run) -> None:
    """Raises RunError unless the caller still owns the run, the period is still open to it, and the project has the
    status it had when the run began."""
    current = get_run(connection, run.id)
    if current.attempt != run.attempt:
        raise _superseded(run, f"attempt {current.attempt} ({current.owner}) has taken it over")
    if not current.is_active:
        raise _superseded(run, f"it is recorded as {current.status}")
    try:
        changed = changed_statuses(connection, run.workspace_id, run.calendar_id)
        if run.period in changed:
            check_period_runs(run.period, changed[run.period], current.reopen_reason)
        check_project_as_begun(connection, run)
    except RunError as error:
        problem = error.problem
        message = f"run {run.id} stops before it writes anything more: {problem.message}"
        raise RunError([replace(problem, message=message)]) from None


def _superseded(run: Run, why: str) -> RunError:
    return fail(
        "RunSuperseded",
        f"run {run.id} may not write any more: {why}",
        hint="a process without a heartbeat for five minutes counts as dead; `tallybook runs` shows what happened "
        "since",
        project=run.project_id,
    )


def _same_dataset(done: Registration, name: str) -> Registration:
    if done.dataset_id != name:
        raise StoreError(
            f"output {done.seq} of run {done.run_id} is already registered as dataset '{done.dataset_id}', not '{name}'"
        )
    return done
