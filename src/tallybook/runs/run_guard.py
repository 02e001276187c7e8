"""Refuses a run because of the status of its project or period, or because it would append rows twice.

Also refuses a retry if a later run has written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tallybook.errors import Problem, RunError, fail
from tallybook.model.location import Location
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import Calendar
from tallybook.model.run import OutputResult, Run, Snapshot
from tallybook.model.state import Json
from tallybook.project.lifecycle import check_open, check_project_runs
from tallybook.project.load import ProjectEntry
from tallybook.project.recorded import Changes, body_of
from tallybook.storage.write import has_written
from tallybook.store.store import Store


def check_may_run(
    store: Store | None,
    after: Changes,
    calendar: Calendar,
    entry: ProjectEntry,
    period: str,
    *,
    reopen_reason: str | None = None,
    again: bool = False,
    draft: bool = False,
) -> EarlierAppends:
    """Raises RunError if a run may not start once the files are recorded. Records nothing.

    Returns what other runs have appended, or tried to, if this one appends too. With `again` that is no reason to
    refuse it. With `draft` the run goes to the sandbox.
    """
    nested = NestedPeriod.of(calendar, period)
    state = after.state(entry.head.id)
    if state is not None:
        check_project_runs(state, draft=draft)
    if store is None:
        check_open(period, nested, {}, reopen_reason)
        return EarlierAppends()
    check_open(period, nested, store.period_statuses(calendar.id), reopen_reason)
    project = entry.project
    writes = state is not None and state.status == "active" and not draft
    if not writes or project is None or not append_outputs(body_of(project)):
        return EarlierAppends()
    earlier = earlier_appends(store, entry.head.id, period)
    if earlier.problem is not None and not again:
        raise RunError([earlier.problem])
    return earlier


def refuse_superseded(store: Store, run: Run) -> None:
    """Refuses a retry if a later run has written: old rows must not replace newer ones, or be mixed with them."""
    found = superseding(store, run)
    if found is not None:
        other, done = found
        raise fail(
            "RunSuperseded",
            f"run {run.id} cannot be retried: run {other.id} of the same project and period {done} since",
            hint=f"start a new run: `tallybook run {run.project_id} --period {run.period}`",
        )


def superseding(store: Store, run: Run) -> tuple[Run, str] | None:
    """Returns a later run of the project and period that has written, and what it has done; None if there is none, or
    if the run has completed."""
    if run.status == "completed":
        return None
    for other in store.runs(project_id=run.project_id, period=run.period):
        if other.claim <= run.claim or other.sandbox != run.sandbox:
            continue
        written = [seq for seq, visible in written_outputs(store, other).items() if visible]
        if other.status == "completed" or written:
            return other, "has completed" if other.status == "completed" else f"has written output {written[-1]}"
    return None


@dataclass(frozen=True)
class Appended:
    """An output of a run that appends. `written` is None if neither the store nor the destination knows."""

    run: Run
    output: OutputResult
    written: bool | None

    def __str__(self) -> str:
        written = self.output.rows_written
        rows = "rows" if written is None else "1 row" if written == 1 else f"{written:,} rows"
        verb = "has appended" if self.written else "may have appended"
        return f"run {self.run.id} ({self.run.status}) {verb} {rows} to {self.output.location}"


@dataclass(frozen=True)
class EarlierAppends:
    """What other runs of a project and period have appended or tried to append, the newest run first."""

    outputs: tuple[Appended, ...] = ()

    @property
    def doubled(self) -> tuple[Appended, ...]:
        """The outputs whose rows are in their destination, or may be."""
        return tuple(appended for appended in self.outputs if appended.written is not False)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose rows are in their destination, or may be."""
        return tuple(dict.fromkeys(appended.run.id for appended in self.doubled))

    @property
    def rivals(self) -> tuple[str, ...]:
        """The runs that began to append and did not. A run that was declared dead may still go on, so its rows are
        looked for again directly before another run appends."""
        return tuple(dict.fromkeys(appended.run.id for appended in self.outputs if appended.written is False))

    @property
    def problem(self) -> Problem | None:
        """Why another run may not append; None if no rows were appended."""
        if not self.doubled:
            return None
        newest, others = self.doubled[0], len(self.runs) - 1
        also = f", and so did {others} earlier run{'s' if others > 1 else ''}" if others else ""
        run = newest.run
        again = (
            f"`tallybook run {run.project_id} --period {run.period} --again` appends once more; with `mode: "
            "replace_period` an output to Delta or a database replaces the rows of the period instead"
        )
        retry = f"`tallybook run --retry {run.id}` continues that run and writes no row twice; "
        return Problem(
            "AlreadyAppended",
            f"{newest} for {run.period}{also}",
            hint=again if run.status == "completed" else retry + again,
            project=run.project_id,
        )


def earlier_appends(
    store: Store, project_id: str, period: str, *, but_not: Collection[str] = frozenset()
) -> EarlierAppends:
    """Returns what the ended runs of a project and period have appended. Runs in the sandbox do not count: there every
    output replaces."""
    runs = store.runs(project_id=project_id, period=period)
    ended = (run for run in runs if not run.is_active and not run.sandbox and run.id not in but_not)
    return EarlierAppends(tuple(appended for run in ended for appended in _appended(store, run)))


def append_outputs(project: Json) -> frozenset[int]:
    """Returns the seqs of the outputs that add to the rows of earlier runs: those with `mode: append`, unless an
    earlier output of the project replaces the same destination."""
    replaced: list[Json] = []
    appending: set[int] = set()
    outputs = [operation for operation in project["operations"] if "destination" in operation.get("arguments", {})]
    for operation in sorted(outputs, key=lambda output: int(output["seq"])):
        arguments = operation["arguments"]
        if arguments.get("mode") != "append":
            replaced.append(arguments["destination"])
        elif arguments["destination"] not in replaced:
            appending.add(operation["seq"])
    return frozenset(appending)


def written_outputs(store: Store, run: Run) -> dict[int, bool | None]:
    """Returns for each output that the run began, by seq, whether its rows are visible. If the store does not say so,
    the destination is asked: the process may have died between writing and recording."""
    outputs = store.output_results(run.id)
    snapshot = store.snapshot(run.id) if outputs else None
    return {
        output.seq: output.committed or (snapshot is not None and _at_destination(snapshot, run, output.seq))
        for output in outputs
    }


def _at_destination(snapshot: Snapshot, run: Run, seq: int) -> bool | None:
    destination = snapshot.destinations.get(str(seq))
    return None if destination is None else has_written(Location.from_json(destination), run.id, seq)


def _appended(store: Store, run: Run) -> Iterator[Appended]:
    outputs = store.output_results(run.id)
    if not outputs:
        return
    appending = append_outputs(store.snapshot(run.id).project)
    written = written_outputs(store, run) if any(output.seq in appending for output in outputs) else {}
    yield from (Appended(run, output, written[output.seq]) for output in outputs if output.seq in appending)
