"""The use cases that run many projects for many periods: plan the order, run, and run again what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from tallybook.errors import RunError, UsageError
from tallybook.workspace.running import SingleRuns

if TYPE_CHECKING:
    from tallybook.engine.events import Observer
    from tallybook.model.batch import Batch
    from tallybook.runs.batch import BatchResult, BatchRun
    from tallybook.runs.batch_order import Item
    from tallybook.runs.batch_plan import BatchPlan, BatchPlanner
    from tallybook.runs.runner import RunResult
    from tallybook.store.store import Store

NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class BatchWatcher:
    """What a caller does while a batch runs. With `parallel` the functions are called from several threads."""

    observers: Callable[[Item], Sequence[Observer]] = lambda _item: ()
    """Makes the observers of each run."""
    started: Callable[[Item, int, int], None] = lambda _item, _number, _count: None
    """Is called with a run that starts, its number, and the number of all."""
    ended: Callable[[BatchRun], None] = lambda _run: None
    """Is called with every run that ended or was skipped."""


@dataclass(frozen=True)
class ManyRuns(SingleRuns):
    """Runs many projects for many periods, in the order of what they register and read."""

    def plan_many(
        self,
        projects: Sequence[str] = (),
        periods: Sequence[str] = (),
        *,
        all_projects: bool = False,
        stale: bool = False,
        draft: bool = False,
        reopen_reason: str | None = None,
    ) -> BatchPlan:
        """Returns the runs that `run_many` would start, in order, and what it would leave out. Writes nothing."""
        with self.existing_store() as store:
            planner = self._planner(store, draft=draft, reopen_reason=reopen_reason)
            return planner.plan(projects, periods, all_projects=all_projects, stale=stale)

    def plan_retry(self, batch_id: str | None = None, *, reopen_reason: str | None = None) -> BatchPlan:
        """Returns the runs that `retry_many` would start, in order. Writes nothing."""
        own, batch_id = self._of_batch(batch_id)
        with own.existing_store() as store:
            if store is None:
                raise UsageError("nothing has run in this workspace")
            return own._plan_retry(store, _with_options(store.batch(batch_id), reopen_reason))

    def run_many(
        self,
        projects: Sequence[str] = (),
        periods: Sequence[str] = (),
        *,
        all_projects: bool = False,
        stale: bool = False,
        parallel: int = 1,
        as_of: date | None = None,
        parameters: Mapping[str, object] = NO_PARAMETERS,
        reopen_reason: str | None = None,
        reason: str | None = None,
        again: bool = False,
        draft: bool = False,
        watcher: BatchWatcher | None = None,
    ) -> BatchResult:
        """Runs projects for periods such as `2026-01` and `2026-01..2026-12`, each after those whose results it reads.

        A failed run stops those that need it and no others: the result says how each ended, and nothing is raised for
        a failed one. With `all_projects`, every active project runs. With `stale`, only what is stale runs again. The
        batch is recorded, so that `retry_many` can finish it.
        """
        plan = self.plan_many(
            projects, periods, all_projects=all_projects, stale=stale, draft=draft, reopen_reason=reopen_reason
        )
        options = {
            "as_of": as_of.isoformat() if as_of is not None else None,
            "parameters": self._known_parameters(plan, parameters),
            "reopen_reason": reopen_reason,
            "reason": reason,
            "again": again,
            "draft": draft,
        }
        if not plan.runs:
            return _nothing(plan)
        with self.store() as store:
            batch = store.create_batch([(run.item.project, run.item.period) for run in plan.runs], options)
            return self._execute(store, batch, plan, parallel, watcher)

    def retry_many(
        self,
        batch_id: str | None = None,
        *,
        parallel: int = 1,
        reopen_reason: str | None = None,
        again: bool = False,
        watcher: BatchWatcher | None = None,
    ) -> BatchResult:
        """Runs what is not completed of a batch, by default the last one, and what is stale of it; nothing else.

        The options are those of the batch. A period that was closed since needs a `reopen_reason`.
        """
        own, batch_id = self._of_batch(batch_id)
        with own.store() as store:
            batch = store.continue_batch(store.batch(batch_id).id)
            batch = _with_options(batch, reopen_reason, again=again)
            return own._execute(store, batch, own._plan_retry(store, batch), parallel, watcher)

    def _plan_retry(self, store: Store, batch: Batch) -> BatchPlan:
        options = batch.options
        planner = self._planner(store, draft=options["draft"], reopen_reason=options["reopen_reason"])
        return planner.plan_retry(batch)

    def is_batch(self, id: str) -> bool:
        """True if a batch of this workspace has the id, in any environment of the store."""
        own, full = self._of_batch(id)
        with own.existing_store() as store:
            return store is not None and full is not None and store.has_batch(full)

    def _of_batch(self, beginning: str | None) -> tuple[Self, str | None]:
        """Returns the workspace in the environment of a batch, and the full id of the batch; None for the last one."""
        if beginning is None:
            return self, None
        batch_id = self.full_id(beginning)
        return self.in_environment_of(batch_id), batch_id

    def _planner(self, store: Store | None, *, draft: bool, reopen_reason: str | None) -> BatchPlanner:
        from tallybook.project.recorded import Recorded
        from tallybook.project.versions import changes
        from tallybook.runs.batch_plan import BatchPlanner

        after = changes(Recorded() if store is None else store.recorded(), self.definitions)
        return BatchPlanner(self.checked, after, self.calendar, store, draft=draft, reopen_reason=reopen_reason)

    def _known_parameters(self, plan: BatchPlan, parameters: Mapping[str, object]) -> dict[str, object]:
        """Returns the parameters. Raises UsageError for one that no project of the batch has."""
        projects = {run.item.project for run in plan.runs} & self.definitions.projects.keys()
        known = {name for project in projects for name in self.definitions.projects[project].head.parameters}
        unknown = sorted(parameters.keys() - known)
        if unknown and plan.runs:
            raise UsageError(f"no project of the batch has a parameter '{unknown[0]}'")
        return dict(parameters)

    def _execute(
        self, store: Store, batch: Batch, plan: BatchPlan, parallel: int, watcher: BatchWatcher | None
    ) -> BatchResult:
        from tallybook.runs.batch import BatchExecution, Progress

        if parallel < 1:
            raise UsageError("--parallel needs a number of at least 1")
        before = {(item.project_id, item.period): item.run_id for item in batch.items}
        watching = watcher or BatchWatcher()
        return BatchExecution(
            store,
            batch,
            plan,
            partial(self._start_item, batch.options, before),
            self.resources.session,
            Progress(watching.observers, watching.started, watching.ended),
            parallel,
        ).execute()

    def _start_item(
        self,
        options: Mapping[str, Any],
        before: Mapping[tuple[str, str], str | None],
        item: Item,
        observers: Sequence[Observer],
    ) -> RunResult:
        """Runs an item of a batch. If its last run has appended a part of its rows, that run is continued instead: a
        new one would append them twice."""
        entry = self.definitions.projects.get(item.project)
        declared = entry.head.parameters if entry is not None else {}
        given = {name: value for name, value in options["parameters"].items() if name in declared}
        own = {name: options[name] for name in ("reopen_reason", "reason", "again", "draft")}
        as_of = date.fromisoformat(options["as_of"]) if options["as_of"] else None
        try:
            return self.run(item.project, item.period, as_of=as_of, parameters=given, observers=observers, **own)
        except RunError as error:
            last = before.get((item.project, item.period))
            if last is None or error.problem.type != "AlreadyAppended":
                raise
        return self.retry(last, reopen_reason=own["reopen_reason"], observers=observers)


def _with_options(batch: Batch, reopen_reason: str | None, *, again: bool = False) -> Batch:
    """Returns a batch whose options are changed for a retry."""
    given = {"reopen_reason": reopen_reason} if reopen_reason is not None else {}
    changed = batch.options | given | ({"again": True} if again else {})
    return batch.model_copy(update={"options": changed})


def _nothing(plan: BatchPlan) -> BatchResult:
    """Returns the result of a batch without runs. It is not recorded, so that a retry takes the one before."""
    from tallybook.runs.batch import BatchResult

    return BatchResult(None, (), plan.left_out, plan.warnings)
