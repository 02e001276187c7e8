"""Takes the snapshot of a run, makes its plan again from the snapshot, and compares its inputs with the snapshot.

What a run reads is what was there when its plan was made; otherwise it publishes nothing. The snapshot has name, size,
time and hash of every plain file. They are compared again directly before each output is published, so rows of a file
that came, went or changed in between never become visible. Delta tables are read at the version of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tallybook.engine.plan import Plan, RunContext, make_plan
from tallybook.errors import ProblemError, RunError, TallybookError, fail
from tallybook.exit_codes import BUSY
from tallybook.expressions.parameters import parameter_values
from tallybook.model.dataset import Dataset
from tallybook.model.location import ABSENT, Location
from tallybook.model.period import Calendar, Period
from tallybook.model.run import DatasetUse, ResolverSnapshot, Run, Snapshot
from tallybook.model.state import Json
from tallybook.model.written import written
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project
from tallybook.project.recorded import body_of, dataset_from
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.inputs import changed_files, current_version, fingerprint
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LISTED = 5
_OF_READING = frozenset({"DataLoadError", "DataNotFound", "SchemaMismatch", "InternalError"})


def take_snapshot(
    plan: Plan,
    project: Project,
    resolver_versions: Mapping[str, int],
    engine_version: str,
    files_of: Callable[[Location], list[Json]],
    sandboxed: Iterable[Dataset] = (),
    environment: str | None = None,
) -> Snapshot:
    """Returns the plan of a run as the store keeps it. `files_of` lists the files of a location with size and time;
    `sandboxed` are the datasets of the sandbox that the run may read."""
    used = dict.fromkeys((source.dataset.id, source.dataset.version) for source in plan.locations)
    return Snapshot(
        project=body_of(project) | {"input_dataset_version": plan.input.dataset.version},
        project_version=plan.project_version,
        period=plan.context.period.model_dump(mode="json"),
        as_of=plan.context.as_of,
        parameters={name: written(value) for name, value in plan.context.parameters.items()},
        environment=environment,
        run_timestamp=plan.context.timestamp,
        input_pinned=plan.input.pinned,
        datasets=tuple(DatasetUse(dataset_id=id, dataset_version=version) for id, version in used),
        sandbox_datasets=tuple(
            body_of(dataset) | {"version": dataset.version}
            for dataset in sandboxed
            if (dataset.id, dataset.version) in used
        ),
        resolver_snapshots=tuple(
            _resolver_snapshot(source, locations, resolver_versions, files_of, _periods(plan, source))
            for source, locations in plan.locations.items()
        ),
        destinations={str(seq): location.to_json() for seq, location in plan.destinations.items()},
        calendar=body_of(plan.context.calendar),
        engine_version=engine_version,
    )


def _resolver_snapshot(
    source: SourceTable,
    locations: tuple[Location, ...],
    versions: Mapping[str, int],
    files_of: Callable[[Location], list[Json]],
    periods: tuple[str, ...],
) -> ResolverSnapshot:
    resolver = locations[0].resolver if locations else None
    return ResolverSnapshot(
        dataset_id=source.dataset.id,
        dataset_version=source.dataset.version,
        table=source.table.name,
        source_period=None if source.period is None else str(source.period),
        source_as_of=source.as_of,
        pinned=source.pinned,
        periods=periods,
        resolver_id=resolver,
        resolver_version=versions.get(resolver) if resolver is not None else None,
        rule=locations[0].rule if locations else None,
        locations=tuple(location.to_json() | {"files": files_of(location)} for location in locations),
    )


def _periods(plan: Plan, source: SourceTable) -> tuple[str, ...]:
    by_period = source.table.temporal_mode == "period"
    return tuple(period.identifier for period in plan.context.periods_of(source)) if by_period else ()


def plan_again(run: Run, snapshot: Snapshot, store: Store, calendar: Calendar) -> Plan:
    """Returns the plan of a recorded run: the operations, dataset versions, locations and calendar it had then.

    `calendar` is the current one, for snapshots of versions that did not keep it.
    """
    project = Project.model_validate({**snapshot.project, "version": snapshot.project_version}, strict=False)
    sandboxed = {body["id"]: dataset_from(body, body["version"]) for body in snapshot.sandbox_datasets}
    recorded = (use for use in snapshot.datasets if use.dataset_id not in sandboxed)
    datasets = DatasetVersions().with_datasets(*sandboxed.values(), *(_dataset_then(store, use) for use in recorded))
    locations = {_key_of(kept): tuple(map(Location.from_json, kept.locations)) for kept in snapshot.resolver_snapshots}
    context = RunContext(
        run_id=run.id,
        period=Period.model_validate(snapshot.period, strict=False),
        as_of=snapshot.as_of,
        timestamp=snapshot.run_timestamp,
        epoch_ms=run.id_epoch_ms,
        parameters=parameter_values(project.parameters, snapshot.parameters, project.id),
        calendar=calendar_then(snapshot, calendar),
    )
    return make_plan(
        bind_project(project, project.operations, datasets, pinned=snapshot.input_pinned),
        context,
        lambda source: _located_then(locations, _resolver_snapshot(source, (), {}, lambda _location: [], ())),
        lambda output, _input: Location.from_json(snapshot.destinations[str(output.seq)]),
    )


def _key_of(kept: ResolverSnapshot) -> tuple[object, ...]:
    """What tells the tables of a run apart."""
    return kept.dataset_id, kept.dataset_version, kept.table, kept.source_period, kept.source_as_of, kept.pinned


def _located_then(
    locations: Mapping[tuple[object, ...], tuple[Location, ...]], table: ResolverSnapshot
) -> tuple[Location, ...]:
    """Returns the locations that a snapshot has for a table. Older snapshots do not say whether it is pinned."""
    kept = locations.get(_key_of(table))
    return locations[_key_of(table.model_copy(update={"pinned": None}))] if kept is None else kept


def _dataset_then(store: Store, use: DatasetUse) -> Dataset:
    definition = store.definition("dataset", use.dataset_id, use.dataset_version)
    assert definition is not None, f"dataset {use.dataset_id} v{use.dataset_version} was recorded"
    return dataset_from(definition.body, definition.version)


def calendar_then(snapshot: Snapshot, now: Calendar) -> Calendar:
    """Returns the calendar of a snapshot; the current one for snapshots of versions that did not keep it."""
    return now if snapshot.calendar is None else Calendar.model_validate(snapshot.calendar, strict=False)


_AS_THEY_ARE: Mapping[Location, Location] = {}


def changed_inputs(
    spark: SparkSession, snapshot: Snapshot, instead: Mapping[Location, Location] = _AS_THEY_ARE
) -> list[str]:
    """The files and tables that are not what they were when the snapshot was taken, in words. `instead` has the
    locations that the run reads because it holds their rows."""
    changed: list[str] = []
    for kept in snapshot.resolver_snapshots:
        for body in kept.locations:
            location = Location.from_json(body)
            changed += changed_files(body.get("files", []), fingerprint(spark, instead.get(location, location)))
            if location.version is None and current_version(location) not in (None, ABSENT):
                changed.append(f"{location.target} is new")
    return list(dict.fromkeys(changed))


@dataclass(frozen=True)
class PlannedInputs:
    """The files and tables a run reads, as its snapshot knows them."""

    spark: SparkSession
    snapshot: Snapshot
    instead: Mapping[Location, Location] = field(default_factory=dict)
    """The locations that the run reads instead of recorded ones, because it holds their rows."""

    def check(self) -> None:
        """Raises DataLoadError if a file is not what it was."""
        if error := self._changed():
            raise error

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Reports a failure of reading as the change of a file, if a file has changed: that explains it."""
        try:
            yield
        except Exception as error:
            of_reading = isinstance(error, ProblemError) and error.problem.type in _OF_READING
            if isinstance(error, TallybookError) and not of_reading:
                raise
            with suppress(OSError, *SPARK_ERRORS):
                if changed := self._changed():
                    raise _in_place_of(error, changed) from error
            raise

    def _changed(self) -> RunError | None:
        changed = changed_inputs(self.spark, self.snapshot, self.instead)
        if not changed:
            return None
        more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
        return fail(
            "DataLoadError",
            f"data that the run reads changed after it was planned: {'; '.join(changed[:_LISTED])}{more}",
            hint="the output was not published; run again when nothing else writes to it",
            cause=BUSY,
        )


def _in_place_of(error: Exception, changed: RunError) -> RunError:
    """The change of a file as the problem of the operation that failed."""
    if not isinstance(error, ProblemError):
        return changed
    return RunError([changed.problem.within(seq=error.problem.seq, operation=error.problem.operation)])
