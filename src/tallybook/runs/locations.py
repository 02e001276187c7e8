"""Finds the locations of a run: where it reads tables, and where it writes outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter

from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DEFAULT_FORMAT, DataSource, FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.resolver import Resolver
from tallybook.model.state import Json, Registration
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.resolve.destination import path_to_write, sandbox_path, table_to_write
from tallybook.resolve.locate import usable_source
from tallybook.resolve.match import pick_resolver
from tallybook.resolve.render import render
from tallybook.resolve.resolve import resolve
from tallybook.storage.inputs import current_version

_DATASOURCE: TypeAdapter[DataSource] = TypeAdapter(DataSource)


@dataclass(frozen=True)
class Locations:
    """Finds locations for one period of one workspace."""

    root: Path
    period: Period
    calendar: Calendar
    resolvers: Mapping[str, Resolver]
    overrides: Mapping[str, str]
    datasources: Mapping[str, DataSource]
    registered: Mapping[tuple[str, int], Location]
    """Where the rows of registered dataset versions stay readable, by dataset id and version."""
    timestamp: datetime
    """The run's, which the `when` of a rule can read."""
    project: str = ""
    sandbox: Path | None = None
    """The folder that takes the outputs of a draft instead of their destinations."""

    def of_table(self, source: SourceTable) -> tuple[Location, ...]:
        """Returns the locations of a table's rows; Delta tables at their current version, so that a replay reads the
        same."""
        dataset = source.dataset
        kept = self.registered.get((dataset.id, dataset.version))
        if kept is not None:
            return (kept,)
        locations = resolve(
            source.table.name,
            dataset.id,
            self.period,
            calendar=self.calendar,
            resolver=self.resolver_of(dataset),
            datasources=self.datasources,
            timestamp=self.timestamp,
            root=self.root,
        )
        return tuple(replace(location, version=current_version(location)) for location in locations)

    def resolver_of(self, dataset: Dataset) -> Resolver:
        return pick_resolver(dataset.id, dataset.resolver_id, self.overrides, self.resolvers)

    def of_output(self, output: Publication, input: SourceTable) -> Location:
        """Returns where a run writes an output: its destination, or a path in the sandbox."""
        destination = self.destination(output, input)
        if self.sandbox is None:
            return destination
        source = destination.source
        if source.path_prefix is None:
            source = FileSource(id=source.id, type=DEFAULT_FORMAT, options=FileOptions(path_prefix="."))
        name = f"{output.seq}-{PurePosixPath(destination.target).name}"
        path = sandbox_path(self.sandbox, self.root, self.project, self.period.identifier, name)
        return Location(source, path)

    def destination(self, output: Publication, input: SourceTable) -> Location:
        """Returns where an output of an active project is written."""
        destination = output.destination

        def rendered(template: str) -> str:
            return render(template, self.period, input.table.name, input.dataset.id)

        if destination.location is None:
            assert destination.datasource_id is not None and destination.table is not None
            source = usable_source(destination.datasource_id, self.datasources, self.root)
            table = rendered(destination.table)
            return Location(source, table_to_write(source, table, self.root))
        path = rendered(destination.location.path)
        return Location(destination.location.source(path), path_to_write(path, self.root))


def registered_locations(registrations: Iterable[Registration]) -> dict[tuple[str, int], Location]:
    """Returns where the rows of registered dataset versions stay readable, by dataset id and version."""
    return {(entry.dataset_id, entry.version): location_from_json(entry.reads) for entry in registrations}


def location_to_json(location: Location) -> Json:
    """Returns a location as the store keeps it. Datasources contain references to secrets, never secrets."""
    return {
        "source": location.source.model_dump(mode="json", by_alias=True),
        "target": location.target,
        "period": location.period,
        "resolver": location.resolver,
        "rule": location.rule,
        "on_missing": location.on_missing,
        "version": location.version,
    }


def location_from_json(body: Json) -> Location:
    """Returns the location that `location_to_json` wrote."""
    source = _DATASOURCE.validate_python(body["source"], strict=False)
    return Location(source, *(body[key] for key in ("target", "period", "resolver", "rule", "on_missing", "version")))
