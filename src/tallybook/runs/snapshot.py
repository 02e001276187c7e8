"""Takes the snapshot of a run, makes its plan again from the snapshot, and compares its inputs with the snapshot.

What a run reads is what was there when its plan was made; otherwise it publishes nothing. The snapshot has name, size
and time of every plain file. They are compared again directly before each output is published, so rows of a file that
came, went or changed in between never become visible. Delta tables are read at the version of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.engine.plan import Plan, RunContext, make_plan
from tallybook.errors import ProblemError, RunError, TallybookError, fail
from tallybook.model.dataset import Dataset
from tallybook.model.location import ABSENT, Location
from tallybook.model.period import Calendar, Period
from tallybook.model.run import DatasetUse, ResolverSnapshot, Run, Snapshot
from tallybook.model.state import Json
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
    calendar: Calendar,
    resolver_versions: Mapping[str, int],
    engine_version: str,
    files_of: Callable[[Location], list[Json]],
) -> Snapshot:
    """Returns the plan of a run as the store keeps it. `files_of` lists the files of a location with size and time."""
    used = dict.fromkeys((source.dataset.id, source.dataset.version) for source in plan.locations)
    return Snapshot(
        project=body_of(project) | {"input_dataset_version": plan.input.dataset.version},
        project_version=plan.project_version,
        period=plan.context.period.model_dump(mode="json"),
        as_of=plan.context.as_of,
        run_timestamp=plan.context.timestamp,
        datasets=tuple(DatasetUse(dataset_id=id, dataset_version=version) for id, version in used),
        resolver_snapshots=tuple(
            _resolver_snapshot(source, locations, resolver_versions, files_of)
            for source, locations in plan.locations.items()
        ),
        destinations={str(seq): location.to_json() for seq, location in plan.destinations.items()},
        calendar=body_of(calendar),
        engine_version=engine_version,
    )


def _resolver_snapshot(
    source: SourceTable,
    locations: tuple[Location, ...],
    versions: Mapping[str, int],
    files_of: Callable[[Location], list[Json]],
) -> ResolverSnapshot:
    resolver = locations[0].resolver if locations else None
    return ResolverSnapshot(
        dataset_id=source.dataset.id,
        dataset_version=source.dataset.version,
        table=source.table.name,
        resolver_id=resolver,
        resolver_version=versions.get(resolver) if resolver is not None else None,
        rule=locations[0].rule if locations else None,
        locations=tuple(location.to_json() | {"files": files_of(location)} for location in locations),
    )


def plan_again(run: Run, snapshot: Snapshot, store: Store) -> Plan:
    """Returns the plan of a recorded run: the operations, dataset versions and locations it had then."""
    project = Project.model_validate({**snapshot.project, "version": snapshot.project_version}, strict=False)
    datasets = DatasetVersions().with_datasets(*(_dataset_then(store, use) for use in snapshot.datasets))
    locations = {
        (kept.dataset_id, kept.dataset_version, kept.table): tuple(map(Location.from_json, kept.locations))
        for kept in snapshot.resolver_snapshots
    }
    context = RunContext(
        run_id=run.id,
        period=Period.model_validate(snapshot.period, strict=False),
        as_of=snapshot.as_of,
        timestamp=snapshot.run_timestamp,
        epoch_ms=run.id_epoch_ms,
    )
    return make_plan(
        bind_project(project, project.operations, datasets),
        context,
        lambda source: locations[source.dataset.id, source.dataset.version, source.table.name],
        lambda output, _input: Location.from_json(snapshot.destinations[str(output.seq)]),
    )


def _dataset_then(store: Store, use: DatasetUse) -> Dataset:
    definition = store.definition("dataset", use.dataset_id, use.dataset_version)
    assert definition is not None, f"dataset {use.dataset_id} v{use.dataset_version} was recorded"
    return dataset_from(definition.body, definition.version)


def calendar_then(snapshot: Snapshot, now: Calendar) -> Calendar:
    """Returns the calendar of a recorded run, or the current one if the snapshot has none."""
    return now if snapshot.calendar is None else Calendar.model_validate(snapshot.calendar, strict=False)


def changed_inputs(spark: SparkSession, snapshot: Snapshot) -> list[str]:
    """The files and Delta tables that are not what they were when the snapshot was taken, in words."""
    changed: list[str] = []
    for kept in snapshot.resolver_snapshots:
        for body in kept.locations:
            location = Location.from_json(body)
            changed += changed_files(body.get("files", []), fingerprint(spark, location))
            if location.version is None and current_version(location) not in (None, ABSENT):
                changed.append(f"{location.target} is new")
    return list(dict.fromkeys(changed))


@dataclass(frozen=True)
class PlannedInputs:
    """The files a run reads, as its snapshot knows them."""

    spark: SparkSession
    snapshot: Snapshot

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
        changed = changed_inputs(self.spark, self.snapshot)
        if not changed:
            return None
        more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
        return fail(
            "DataLoadError",
            f"files that the run reads changed after it was planned: {'; '.join(changed[:_LISTED])}{more}",
            hint="the output was not published; run again when nothing else writes to these files",
        )


def _in_place_of(error: Exception, changed: RunError) -> RunError:
    """The change of a file as the problem of the operation that failed."""
    if not isinstance(error, ProblemError):
        return changed
    return RunError([changed.problem.within(seq=error.problem.seq, operation=error.problem.operation)])
