"""The use cases that look things up or look after a workspace: runs, datasets, periods, sessions, the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tallybook.errors import Problem, UsageError, ValidationError, did_you_mean
from tallybook.expressions.scope import Scope
from tallybook.model.dataset import DatasetRef
from tallybook.model.nested_period import NestedPeriod
from tallybook.project.bind import working_schema
from tallybook.workspace.base import WorkspaceBase

if TYPE_CHECKING:
    from tallybook.documents.clean import Cleanup
    from tallybook.documents.lifecycle import JoinedStore, PeriodList, PeriodState, RenamedWorkspace, UpgradedStore
    from tallybook.documents.session import StoppedSessions, WarmSessions, WarmSessionState
    from tallybook.model.datasource import DataSource
    from tallybook.model.period import PeriodStatus
    from tallybook.model.run import Run, RunStatus
    from tallybook.project.explain import Explanation
    from tallybook.runs.datasource_check import DatasourceCheck
    from tallybook.runs.history import DatasetVersion, RunDetails, RunList


@dataclass(frozen=True)
class WorkspaceRecords(WorkspaceBase):
    """What is known of a workspace, and what keeps it in order."""

    def runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        statuses: Sequence[RunStatus] = (),
        limit: int | None = None,
    ) -> RunList:
        """Returns recorded runs that meet all conditions, newest first. Refuses a project or period that does not
        exist."""
        from tallybook.runs.history import list_runs

        with self.existing_store() as store:
            listed = list_runs(store, project, period, statuses, limit)
        if not listed.runs:
            self._check_names(project, period)
        return listed

    def run_details(self, run_id: str) -> RunDetails:
        """One recorded run with its operations, outputs, events and snapshot."""
        from tallybook.runs.history import run_details

        run_id = self.full_id(run_id)
        with self.in_environment_of(run_id).existing_store() as store:
            return run_details(store, run_id)

    def stale_run(self, project: str, period: str) -> tuple[Run, tuple[str, ...]] | None:
        """Returns the last run of a project and period if its inputs were written anew since, with what was written;
        None otherwise."""
        from tallybook.runs.history import stale_run

        with self.existing_store() as store:
            return stale_run(store, project, period)

    def datasets(self) -> tuple[DatasetVersion, ...]:
        """The newest version of every recorded dataset."""
        from tallybook.runs.history import latest_datasets

        with self.existing_store() as store:
            return latest_datasets(store)

    def dataset_versions(self, dataset_id: str) -> tuple[DatasetVersion, ...]:
        """All recorded versions of a dataset, oldest first."""
        from tallybook.runs.history import dataset_versions

        with self.existing_store() as store:
            return dataset_versions(store, dataset_id)

    def datasources(self, ids: Sequence[str] = ()) -> tuple[DataSource, ...]:
        """Returns the datasources of the files, by their ids; with `ids`, only those. Refuses an id that does not
        exist."""
        known = self.definitions.datasources
        for id in ids:
            if id not in known:
                raise UsageError(f"there is no datasource '{id}'", did_you_mean(id, known))
        return tuple(known[id].entity for id in sorted(known) if not ids or id in ids)

    def check_datasources(
        self, ids: Sequence[str] = (), *, spark: bool = False, seconds: float = 30
    ) -> list[DatasourceCheck]:
        """Connects to datasources and returns what each contains. With `spark`, Spark is started for those that only
        Spark can list."""
        from tallybook.runs.datasource_check import check_datasources

        session = self.resources.session if spark else None
        return check_datasources(self.datasources(ids), self.root, session, seconds=seconds)

    def clean(self, older_than: str | None = None, *, dry_run: bool = False) -> Cleanup:
        """Removes what the product has left and nobody needs any more: logs, scratch folders, sandboxes, staging
        folders, files of old versions of Delta tables. A dry run only finds it."""
        from tallybook.documents.clean import Cleanup
        from tallybook.model.settings import RetentionSettings, age
        from tallybook.runs.clean import Cleaner

        settings = self.definitions.settings
        limit = older_than or (settings.retention if settings else RetentionSettings()).older_than
        before = datetime.now(UTC) - age(limit)
        with self.existing_store() as store:
            has_store = store is not None
        if has_store and not dry_run:
            self.store().close()  # records runs as failed whose process has died
        with self.existing_store() as store:
            cleaner = Cleaner(store, self.resources.scratch.parent, self.sandbox, before)
            found = list(cleaner.find())
            done = found if dry_run else [cleaner.remove(leftover) for leftover in found]
        return Cleanup.of(done, limit, before, dry_run=dry_run)

    def periods(self) -> PeriodList:
        """The periods that were closed or locked."""
        from tallybook.documents.lifecycle import PeriodList

        with self.existing_store() as store:
            statuses = store.period_statuses(self.calendar.id) if store is not None else {}
        return PeriodList(calendar=self.calendar.id, periods=statuses)

    def period(self, identifier: str) -> PeriodState:
        """A period with its days and its status."""
        from tallybook.documents.lifecycle import PeriodState

        nested = NestedPeriod.of(self.calendar, identifier)
        with self.existing_store() as store:
            changed = store.period_statuses(self.calendar.id) if store is not None else {}
            changes = nested.changes_of(store.period_changes(self.calendar.id)) if store is not None else ()
        return PeriodState.of(self.calendar.id, nested.period, nested.status(changed), changes)

    def set_period_status(self, identifier: str, status: PeriodStatus, *, reason: str | None = None) -> PeriodState:
        """Closes or locks a period, and with it all periods inside it; there is no way back. Who did it and the reason
        are kept. The result names active projects that have not run for it, or whose run is stale."""
        from tallybook.documents.lifecycle import PeriodState
        from tallybook.runs.unfinished import unfinished_projects

        nested = NestedPeriod.of(self.calendar, identifier)
        with self.store() as store:
            new_status = store.set_period_status(self.calendar.id, identifier, status, nested, reason)
            changes = nested.changes_of(store.period_changes(self.calendar.id))
            unfinished = unfinished_projects(store, self.calendar, nested.period)
        return PeriodState.of(self.calendar.id, nested.period, new_status, changes, unfinished)

    def counts(self) -> dict[str, int]:
        """Returns the number of definitions of each kind."""
        definitions = self.definitions
        return {
            "project": len(definitions.projects),
            "dataset": len(definitions.datasets),
            "resolver": len(definitions.resolvers),
            "datasource": len(definitions.datasources),
            "calendar": len(definitions.calendars),
            "scenario": len(definitions.scenarios),
        }

    def explain(self, expression: str, dataset_id: str) -> Explanation:
        """Explains an expression over the rows of a dataset."""
        from tallybook.project.explain import explain

        return explain(expression, self.scope_of(dataset_id))

    def scope_of(self, dataset_id: str) -> Scope:
        """Returns the columns that an expression over the rows of a dataset can read."""
        dataset = self.checked.datasets.find(DatasetRef.model_construct(dataset_id=dataset_id))
        if dataset is None:
            raise ValidationError(self.checked.problems)
        if isinstance(dataset, Problem):
            raise ValidationError([dataset])
        return working_schema(dataset, self.checked.datasets).scope()

    def start_session(self, idle_minutes: int) -> WarmSessionState:
        """Starts a warm session with the settings of the workspace, and waits until it takes commands. Also starts the
        process in which they run."""
        from tallybook.documents.session import WarmSessionState
        from tallybook.engine.standby_server import start_standby
        from tallybook.engine.warm import start_warm

        started = start_warm(self.resources.spark_settings, idle_minutes)
        start_standby()
        return WarmSessionState.of(*started)

    def sessions(self) -> WarmSessions:
        """The warm sessions of this user, of any settings."""
        from tallybook.documents.session import WarmSessions, WarmSessionState
        from tallybook.engine.warm import all_warm

        states = (WarmSessionState.of(*session) for session in all_warm(self.resources.spark_settings))
        return WarmSessions(sessions=tuple(states))

    def stop_sessions(self, *, all_sessions: bool = False, now: bool = False) -> StoppedSessions:
        """Stops the warm session of the workspace, or those of any settings. Raises SessionError if one is in use,
        unless `now`."""
        from tallybook.documents.session import StoppedSessions
        from tallybook.engine.warm import all_warm, stop_warm

        chosen = [found for found in all_warm(self.resources.spark_settings) if all_sessions or found[2]]
        return StoppedSessions.of(stop_warm(session, now=now) for session, *_ in chosen)

    def upgrade_store(self) -> UpgradedStore:
        """Makes or migrates the tables of the store."""
        from tallybook.documents.lifecycle import UpgradedStore

        self.resources.upgrade_store()
        return UpgradedStore(upgraded=True)

    def join_store(self, *, new: bool = False) -> JoinedStore:
        """Makes this folder the workspace that has its name in the store, whatever its files define. With `new`, adds a
        new workspace of that name."""
        from tallybook.documents.lifecycle import JoinedStore

        self.resources.join_store(new=new)
        return JoinedStore(workspace=self.name)

    def rename_in_store(self, old: str) -> RenamedWorkspace:
        """Gives the workspace `old` of the store the name that the settings have now."""
        from tallybook.documents.lifecycle import RenamedWorkspace

        self.resources.rename_in_store(old)
        return RenamedWorkspace(workspace=self.name, old=old)
