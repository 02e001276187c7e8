"""What drafts registered in the sandbox, for other drafts to read: so that a chain of drafts can be tried together.

Nothing is recorded for it. The newest completed run of a draft for each period says in its snapshot which datasets its
outputs register, and where in the sandbox they are. Active projects never see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from tallybook.errors import TallybookError
from tallybook.model.dataset import Dataset
from tallybook.model.location import Location
from tallybook.model.period import Calendar
from tallybook.model.relative_period import RunPeriod
from tallybook.model.run import Run
from tallybook.model.state import Registration
from tallybook.operations.schema import SourceTable
from tallybook.project.dataset_versions import DatasetVersions, registered_dataset
from tallybook.project.load import Definitions
from tallybook.project.recorded import Changes
from tallybook.runs.registered import PeriodLocations, not_written
from tallybook.store.store import Store


@dataclass(frozen=True)
class SandboxDataset:
    """A dataset that a draft registered: its schema, and where the rows of each period are."""

    dataset: Dataset
    project_id: str
    was_active: bool
    """True if the draft runs only with `--draft`, because it was active before it was edited."""
    locations: Mapping[str, Location]
    """By the period of the run that wrote them, the newest run first."""


@dataclass(frozen=True)
class SandboxDatasets:
    """The datasets of the sandbox that a draft reads instead of those that active projects registered."""

    by_id: Mapping[str, SandboxDataset] = field(default_factory=dict)
    for_draft: bool = False
    """True if the project that reads them is a draft."""

    def added_to(self, versions: DatasetVersions) -> DatasetVersions:
        """Returns the versions with those of the sandbox as the newest ones."""
        return versions.with_datasets(*(found.dataset for found in self.by_id.values()))

    def of(self, dataset: Dataset) -> SandboxDataset | None:
        """Returns the dataset of the sandbox if this version is it."""
        found = self.by_id.get(dataset.id)
        return found if found is not None and found.dataset.version == dataset.version else None

    def locations(self, found: SandboxDataset, source: SourceTable, run: RunPeriod) -> tuple[Location, ...]:
        """Returns where the rows of a table are for the periods that it is read for. Raises DataNotFound if the draft
        has not been run for one of them."""
        if source.table.temporal_mode != "period":
            own = found.locations.get(run.identifier)
            return (own or next(iter(found.locations.values())),)
        locations, missing = PeriodLocations.known(found.locations, run.calendar).of(source.periods(run))
        if missing:
            raise not_written(
                f"the sandbox has no rows of '{found.dataset.id}'",
                f"draft '{found.project_id}'",
                f"tallybook run {found.project_id}{' --draft' if found.was_active else ''}",
                missing,
            )
        return locations


NOTHING = SandboxDatasets()


def sandbox_datasets(
    store: Store | None,
    definitions: Definitions,
    calendar: Calendar,
    project_id: str,
    after: Changes,
    *,
    draft: bool = False,
) -> SandboxDatasets:
    """Returns what other drafts registered in the sandbox, for a project that is a draft or is run as one; nothing for
    another one.

    Rows that an active project registered later than the draft take precedence.
    """
    drafts = {state.project_id: state for state in after.states if state.status == "draft"}
    found: dict[str, SandboxDataset] = {}
    if not (draft or project_id in drafts):
        return NOTHING
    if store is None:
        return SandboxDatasets(for_draft=True)
    later = {entry.dataset_id: entry.created_at for entry in sorted(after.recorded.registrations, key=_moment)}
    for maker in drafts.keys() - {project_id}:
        entry = definitions.projects.get(maker)
        names = {operation.registers for operation in entry.operations if operation} if entry is not None else set()
        for run in _newest_runs(store, maker, calendar) if names - {None} else ():
            for dataset, location in _registered(store, run, calendar):
                is_newest = dataset.id not in later or later[dataset.id] < run.created_at
                if dataset.id in names and is_newest:
                    version = after.latest("dataset").get(dataset.id, 0) + 1
                    was_active = drafts[maker].active_version is not None
                    first = SandboxDataset(dataset.model_copy(update={"version": version}), maker, was_active, {})
                    known = found.get(dataset.id, first)
                    found[dataset.id] = replace(known, locations={**known.locations, run.period: location})
    return SandboxDatasets(found, for_draft=True)


def _moment(registration: Registration) -> datetime:
    return registration.created_at


def _newest_runs(store: Store, project_id: str, calendar: Calendar) -> list[Run]:
    """The newest completed run of a draft for each period, newest first."""
    runs = store.runs(project_id=project_id, statuses=("completed",))
    newest: dict[str, Run] = {}
    for run in runs:
        if run.sandbox and run.calendar_id == calendar.id:
            newest.setdefault(run.period, run)
    return list(newest.values())


def _registered(store: Store, run: Run, calendar: Calendar) -> Iterator[tuple[Dataset, Location]]:
    """What the outputs of a run would have registered, and where they are."""
    from tallybook.runs.snapshot import plan_again

    with suppress(TallybookError):  # a snapshot of an older version that is not valid any more
        plan = plan_again(run, store.snapshot(run.id), store, calendar)
        written = {result.seq: result for result in store.output_results(run.id) if result.committed}
        for output in plan.outputs:
            if output.register_as is not None and output.seq in written:
                place = plan.destinations[output.seq]
                version = written[output.seq].delta_version
                yield registered_dataset(output), replace(place, version=version, period=run.period)
