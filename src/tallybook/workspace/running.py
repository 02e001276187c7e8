"""The use cases of one run: plan, run, retry, replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from tallybook.errors import Problem, RunError
from tallybook.workspace.base import WorkspaceBase

if TYPE_CHECKING:
    from tallybook.engine.events import Observer
    from tallybook.engine.plan import Plan
    from tallybook.model.run import FirstRows
    from tallybook.runs.replay import Replay
    from tallybook.runs.runner import Runner, RunResult
    from tallybook.store.store import Store


@dataclass(frozen=True)
class SingleRuns(WorkspaceBase):
    """Runs one project for one period."""

    def plan(
        self,
        project: str,
        period: str,
        as_of: date | None = None,
        parameters: Mapping[str, object] = MappingProxyType({}),
    ) -> Plan:
        """Returns what a run would do: versions, locations and schemas. Writes nothing."""
        from tallybook.engine.plan import RunContext
        from tallybook.expressions.parameters import parameter_values
        from tallybook.project.recorded import Recorded
        from tallybook.runs.planner import Planner
        from tallybook.runs.prepare import prepare
        from tallybook.runs.sandbox import sandbox_datasets

        with self.existing_store() as store:
            recorded = Recorded() if store is None else store.recorded()
            find = partial(sandbox_datasets, store, self.definitions, self.calendar, project)
            prepared = prepare(self.definitions, recorded, project, find_sandbox=find)
        prepared.check_valid()
        span = self.calendar.period(period)
        values = parameter_values(prepared.entry.head.parameters, parameters, project)
        context = RunContext("plan", span, as_of or span.start_date, datetime.now(UTC), 0, values, self.calendar)
        state = prepared.changes.state(project)
        planner = Planner(self.definitions, recorded.registrations, self.sandbox, prepared.sandbox)
        return planner.plan(prepared.fitting(), context, sandbox=state is None or state.status == "draft")

    def refusal(self, project: str, period: str) -> Problem | None:
        """Returns why a run would be refused now; None if it would start. Writes nothing."""
        from tallybook.project.versions import changes
        from tallybook.runs.run_guard import check_may_run

        self._known_project(project)
        entry, calendar = self.definitions.projects[project], self.calendar
        after = changes(self._recorded(), self.definitions)
        with self.existing_store() as store:
            try:
                check_may_run(store, after, calendar, entry, period)
            except RunError as error:
                return error.problem
        return None

    def run(
        self,
        project: str,
        period: str,
        *,
        as_of: date | None = None,
        parameters: Mapping[str, object] = MappingProxyType({}),
        reopen_reason: str | None = None,
        reason: str | None = None,
        again: bool = False,
        draft: bool = False,
        observers: Sequence[Observer] = (),
    ) -> RunResult:
        """Runs a project for a period, with values for its parameters. Raises RunError if the run fails. With `again`
        it appends once more what an earlier run has appended for the period. With `draft` its outputs go to the
        sandbox, also if the project is active or was active before it changed. `reason` is kept with the run."""
        from tallybook.runs.announce import announcing
        from tallybook.runs.telemetry import telemetry_observers

        observers = (*observers, *telemetry_observers())
        with announcing(observers, project, period) as announced, self.store() as store:
            return self._runner(store, announced).run(
                project,
                period,
                as_of=as_of,
                parameters=parameters,
                reopen_reason=reopen_reason,
                reason=reason,
                again=again,
                draft=draft,
            )

    def retry(
        self,
        run_id: str,
        *,
        reopen_reason: str | None = None,
        again: bool = False,
        observers: Sequence[Observer] = (),
    ) -> RunResult:
        """Continues a failed or cancelled run. Outputs that it finished are not written again."""
        from tallybook.runs.announce import announcing
        from tallybook.runs.telemetry import telemetry_observers

        run_id = self.full_id(run_id)
        own = self.in_environment_of(run_id)
        with announcing((*observers, *telemetry_observers())) as announced, own.store() as store:
            return own._runner(store, announced).retry(run_id, reopen_reason=reopen_reason, again=again)

    def replay(self, run_id: str) -> Replay:
        """Executes a completed run again and compares every cell it wrote."""
        from tallybook.runs.replay import replay

        run_id = self.full_id(run_id)
        own = self.in_environment_of(run_id)
        with own.store() as store:
            return replay(store, own.resources.session, run_id, own.calendar, own.resources.scratch)

    def first_rows(self, result: RunResult, count: int) -> Iterator[tuple[int, FirstRows]]:
        """Yields the seq of each output of a run, and the first rows that it wrote."""
        from tallybook.runs.outputs import output_rows

        for output in result.outputs:
            yield output.seq, output_rows(self.session, result.plan, result.run, output, count)

    def _runner(self, store: Store, observers: Sequence[Observer]) -> Runner:
        from tallybook.runs.runner import Runner

        return Runner(self.definitions, store, cache(self.resources.session), self.sandbox, observers)
