"""Plans a batch: which projects run for which periods, in which order, and what is left out and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallybook.errors import Problem, ProblemError, RunError, UsageError, ValidationError
from tallybook.model.batch import Batch
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import Calendar
from tallybook.model.run import Run
from tallybook.model.state import ProjectState, Registration
from tallybook.project.check_result import CheckResult
from tallybook.project.lifecycle import check_open
from tallybook.project.recorded import Changes
from tallybook.project.unread import missing_project
from tallybook.runs.batch_order import Item, PlannedRun, ProjectFlow, chosen_periods, order_runs, with_followers
from tallybook.runs.stale import stale_runs
from tallybook.store.store import Store


@dataclass(frozen=True)
class LeftOut:
    """A project that is not part of the batch, or an item that need not run, and why."""

    project: str
    reason: str
    period: str | None = None


@dataclass(frozen=True)
class BatchPlan:
    """The runs of a batch, in order."""

    runs: tuple[PlannedRun, ...]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchPlanner:
    """Plans batches of one workspace. It checks the workspace once, however many runs there are."""

    checked: CheckResult
    after: Changes
    """What is recorded once the files are."""
    calendar: Calendar
    store: Store | None
    draft: bool = False
    reopen_reason: str | None = None

    def plan(
        self, projects: Sequence[str], periods: Sequence[str], *, all_projects: bool = False, stale: bool = False
    ) -> BatchPlan:
        """Returns the runs of these projects, or of all that are in use, for these periods. With `stale`, only those
        whose last run is stale or becomes so. Raises if a project or period is unknown, or a period is not open."""
        if not projects and not all_projects:
            raise UsageError("no project is given", "name projects, or give --all for all that are active")
        if not periods:
            raise UsageError("no period is given", "tallybook run --all --period 2026-01..2026-12")
        left_out: tuple[LeftOut, ...] = ()
        names = tuple(dict.fromkeys(projects))
        self._check_known(names)
        if all_projects:
            in_use = [state.project_id for state in self.after.states if _is_in_use(state)]
            names = tuple(dict.fromkeys((*names, *in_use)))
            left_out = tuple(self._not_in_use(names))
        chosen = chosen_periods(periods, self.calendar)
        flows = self._flows(names)
        runs = order_runs(flows, chosen, self.calendar)
        if stale:
            last = self._last_runs()
            is_stale = self._stale(last.values())
            stale_items = {item for item, run in last.items() if run.id in is_stale}
            known = with_followers(runs, stale_items)
            only = frozenset(item for item in known if item in last)
            left_out += tuple(
                LeftOut(run.item.project, "up to date" if run.item in last else "has not run", run.item.period)
                for run in runs
                if run.item not in only
            )
            runs = order_runs(flows, chosen, self.calendar, only)
        self._check_open(runs)
        return BatchPlan(runs, left_out, tuple(self._warnings(flows)))

    def plan_retry(self, batch: Batch) -> BatchPlan:
        """Returns the runs of a batch that are not completed, or are stale, and those that need one of them."""
        items = [Item(item.project_id, item.period) for item in batch.items]
        done = self._completed(batch)
        stale = self._stale(done.values())
        flows = self._flows(tuple(dict.fromkeys(item.project for item in items)))
        periods = chosen_periods([item.period for item in items], self.calendar)
        runs = order_runs(flows, periods, self.calendar, frozenset(items))
        to_run = {item for item in items if item not in done or done[item].id in stale}
        only = with_followers(runs, to_run)
        left_out = tuple(LeftOut(i.project, "completed", i.period) for i in items if i not in only)
        runs = order_runs(flows, periods, self.calendar, only)
        self._check_open(runs)
        return BatchPlan(runs, left_out, tuple(self._warnings(flows)))

    def _completed(self, batch: Batch) -> dict[Item, Run]:
        """Returns the completed runs of a batch, and those that were completed since by other commands."""
        last = self._last_runs(sandbox=None)
        return {
            Item(item.project_id, item.period): run
            for item in batch.items
            if (run := last.get(Item(item.project_id, item.period))) is not None
            and (run.id == item.run_id or run.created_at >= batch.created_at)
        }

    def _last_runs(self, *, sandbox: bool | None = False) -> dict[Item, Run]:
        """Returns the newest completed run of every project and period of the calendar."""
        last: dict[Item, Run] = {}
        for run in self.store.runs(statuses=("completed",)) if self.store is not None else ():
            if run.calendar_id == self.calendar.id and sandbox in (None, run.sandbox):
                last.setdefault(Item(run.project_id, run.period), run)
        return last

    def _stale(self, runs: Collection[Run]) -> Mapping[str, object]:
        return stale_runs(self.store, runs) if self.store is not None else {}

    def _flows(self, names: Sequence[str]) -> dict[str, ProjectFlow]:
        """Returns what the projects read and register. Of one whose file cannot be read, what its runs registered."""
        flows: dict[str, ProjectFlow] = {}
        for name in names:
            state = self.after.state(name)
            sandbox = self.draft or state is None or (state.status == "draft" and state.active_version is None)
            entry, bound = self.checked.definitions.projects.get(name), self.checked.bound.get(name)
            registered = frozenset(entry.dataset_id for entry in self._registrations if entry.project_id == name)
            flows[name] = (
                ProjectFlow.of(entry, bound, sandbox=sandbox)
                if entry is not None and bound is not None
                else ProjectFlow(registers=registered, sandbox=sandbox)
            )
        return flows

    @property
    def _registrations(self) -> Sequence[Registration]:
        return self.after.recorded.registrations

    def _check_known(self, names: Sequence[str]) -> None:
        definitions = self.checked.definitions
        unknown = [name for name in names if name not in definitions.projects]
        problems = (missing_project(name, definitions.projects, definitions.unread) for name in unknown)
        if unknown:
            raise ValidationError(problem for found in problems for problem in found)

    def _check_open(self, runs: Sequence[PlannedRun]) -> None:
        """Raises RunError if a period is closed or locked, before anything runs."""
        statuses = self.store.period_statuses(self.calendar.id) if self.store is not None else {}
        problems: list[Problem] = []
        for name in dict.fromkeys(run.item.period for run in runs):
            try:
                check_open(name, NestedPeriod.of(self.calendar, name), statuses, self.reopen_reason)
            except ProblemError as error:
                problems += error.problems
        if problems:
            raise RunError(problems)

    def _not_in_use(self, names: Collection[str]) -> Iterator[LeftOut]:
        for name in self.checked.definitions.projects:
            state = self.after.state(name)
            if name not in names:
                is_draft = state is None or state.status == "draft"
                yield LeftOut(name, "a draft that was never activated" if is_draft else "inactive")

    def _warnings(self, flows: Mapping[str, ProjectFlow]) -> Iterator[str]:
        """Yields a warning for each project that does not see what a draft of the batch makes."""
        for name, flow in flows.items():
            for maker, made in flows.items():
                missed = sorted({read.dataset for read in flow.reads} & made.registers)
                if missed and made.sandbox and not flow.sandbox:
                    yield (
                        f"'{name}' does not read what '{maker}' writes here: '{maker}' is a draft, so '{missed[0]}' "
                        "goes to the sandbox"
                    )


def _is_in_use(state: ProjectState) -> bool:
    """True if a project is active, or would be but for an edit or a conflict, which the batch must report."""
    return state.status in ("active", "conflict") or (state.status == "draft" and state.active_version is not None)
